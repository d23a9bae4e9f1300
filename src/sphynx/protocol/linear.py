"""Linear maps of a program between two parties: shares of W r offline by RLWE, W (x - r) in plain online.

    offline    client -> server    Enc(r << shift), once per tensor, shift and layout        (linear_plan.Upload)
               server -> client    Enc(W r - s), one reply for each map
    online     the server computes W (x - r) + s + bias on its share; the client computes nothing and sends nothing

The client's share of a map is what it decrypted: it is known before the inference, so a map that reads the result of
another needs no more than a further upload. All images of a batch, and of a group of bundles, go through one message;
where there are enough of them they share ciphertexts (linear_plan.py). docs/rlwe.md has the noise and simulation
arguments; fresh encryptions of zero and uniform masks of replies are made inside the compiled core.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray

from sphynx.core import rlwe
from sphynx.core.ring import RingConv, ring_dtype
from sphynx.errors import SphynxError
from sphynx.program.convolve import Array
from sphynx.program.ir import INPUT, Combine, Linear, Program, PublicMap
from sphynx.protocol.channel import Channel
from sphynx.protocol.linear_plan import ProgramPlan, Upload, plan_group, plan_images, plan_program
from sphynx.protocol.runnable import require_rare
from sphynx.protocol.shares import Ring, Words, apply_public, ring_mask
from sphynx.protocol.verify.plan import CheckPlan
from sphynx.protocol.weight_memory import SetName, WeightMemory


@dataclass(frozen=True)
class PreparedMaps:
    """The weights of all linear maps as one plan has them."""

    plan: ProgramPlan
    convs: Mapping[str, rlwe.PreparedConv]


class ServerModel:
    """The server's weights in the two forms that it computes with. All connections of a process share it: what they may
    change is that weights for groups are prepared, when the first group comes."""

    def __init__(
        self,
        program: Program,
        weights: Mapping[str, Array],
        *,
        threads: int = 0,
        prepared_values: NDArray[np.int32] | None = None,
        memory_bytes: int | None = None,
        check: CheckPlan | None = None,
    ) -> None:
        """`prepared_values` are those of an equal model, map after map (`shared_weights.py`): nothing is prepared.

        Prepared weights take up to `memory_bytes`: at first the maps in order as far as they fit, for an image alone
        and then for groups, later those of the set that is asked for more (`weight_memory.py`), unless they are
        `prepared_values`, which stay as they are. Those of the other maps are transformed whenever they are needed,
        16 MB at a time. With a `check` clients need not be trusted: then the linear phase has a wider ring than the
        program.
        """
        self.offline = check.wide(program) if check else program
        require_rare(self.offline, weights)
        self.program, self.weights, self.check = program, weights, check
        self.plan = plan_program(self.offline)
        self.dtype = ring_dtype(program.ring_bits)
        self.threads = threads
        self.biases: dict[str, Ring] = {}
        self._memory_bytes = memory_bytes
        self._memory = None if memory_bytes is None or prepared_values is not None else WeightMemory(memory_bytes)
        self._ring_convs: dict[str, list[RingConv]] = {}
        self._preparing = threading.Lock()
        self._prepared: list[rlwe.PreparedConv] = []  # all, in the order of their values
        self._alone = self._prepare(self.plan, prepared_values)
        self._together = None if prepared_values is None else self._prepare(plan_group(self.offline), prepared_values)
        for step in program.linears:
            self._ring_convs[step.name] = [
                RingConv(shape, program.ring_bits, factor.astype(np.int32))
                for shape, factor in zip(self.plan.convs[step.name].shapes, self._factors(step), strict=True)
            ]
            bias = weights[step.bias_name].astype(np.int64).view(np.uint64)
            self.biases[step.name] = (bias & ring_mask(program)).astype(self.dtype)
        self.constants = {
            step.name: np.array(step.constants, np.int64).view(np.uint64)
            for step in program.steps
            if isinstance(step, Combine) and step.constants
        }

    def maps_for(self, images: int) -> PreparedMaps:
        """Return the weights for `images` images at once, as `plan_images` plans them."""
        is_alone = plan_images(self.offline, images).images == 1
        return self._alone if is_alone else self.maps_for_groups()

    def maps_to_use(self, images: int) -> PreparedMaps:
        """The same, counted: what is asked for more may be held instead of the rest."""
        maps = self.maps_for(images)
        if self._memory:
            self._memory.ask(self._kind(maps))
        return maps

    def conv_to_use(self, maps: PreparedMaps, name: str) -> rlwe.PreparedConv:
        """A map's weights, which are held from now on where there is memory for them."""
        conv = maps.convs[name]
        if self._memory and not conv.is_held:
            together = self._together or self._alone
            sets: dict[SetName, Sequence[rlwe.PreparedConv]]
            sets = {"alone": [*self._alone.convs.values()], "together": [*together.convs.values()]}
            self._memory.hold(self._kind(maps), conv, rlwe.prepared_bytes(maps.plan.params, conv.plan), sets)
        return conv

    def _kind(self, maps: PreparedMaps) -> SetName:
        return "alone" if maps is self._alone else "together"

    def maps_for_groups(self) -> PreparedMaps:
        with self._preparing:
            if self._together is None:
                self._together = self._prepare(plan_group(self.offline), None)
            return self._together

    @property
    def prepared(self) -> Sequence[rlwe.PreparedConv]:
        """The weights as RLWE plaintexts that were prepared so far."""
        return tuple(self._prepared)

    @property
    def prepared_bytes(self) -> int:
        """Memory of the weights as RLWE plaintexts, by far the largest part."""
        return sum(conv.bytes for conv in self._prepared)

    def _prepare(self, plan: ProgramPlan, values: NDArray[np.int32] | None) -> PreparedMaps:
        """Prepare what is not there yet: a map that packs one image at a time is the same for groups."""
        convs: dict[str, rlwe.PreparedConv] = {}
        known = {} if plan is self.plan else self._alone.convs
        for step in self.program.linears:
            conv = plan.convs[step.name]
            if step.name in known and known[step.name].plan == conv:
                convs[step.name] = known[step.name]
                continue
            at = self.prepared_bytes
            limit_bytes = inf if self._memory_bytes is None else self._memory_bytes
            convs[step.name] = rlwe.PreparedConv(
                plan.params,
                conv,
                self._factors(step),
                self.threads,
                values=None if values is None else values[at // 4 :],
                held=at + rlwe.prepared_bytes(plan.params, conv) <= limit_bytes,
                movable=self._memory is not None,
            )
            self._prepared.append(convs[step.name])
        return PreparedMaps(plan, convs)

    def _factors(self, step: Linear) -> list[Array]:
        return [self.weights[step.weight_name(number)] for number in range(len(step.terms))]

    def with_bias(self, name: str, share: Words) -> Ring:
        """Add a map's bias to the server's share of it, in the program's ring."""
        biased: Ring = share.astype(self.dtype) + self.biases[name]
        return biased

    def add_term(self, step: Linear, number: int, source: Ring, total: Ring, threads: int) -> None:
        """Adds a term of a map on the server's share of its source; both (images, channels, height, width)."""
        shift, conv = step.terms[number].shift, self._ring_convs[step.name][number]
        for image, out in zip(source, total, strict=True):
            part = conv(image, threads)
            if shift:
                part <<= self.dtype(shift)
            out += part


class ServerPass:
    """One inference's linear maps on the server's shares. What a map reads of earlier activations can be summed ahead,
    while the parties still exchange the messages of the latest one."""

    def __init__(self, model: ServerModel, shares: Mapping[str, Ring], pixels: Ring) -> None:
        """`shares` are s + bias of each map."""
        self.tensors = {INPUT: pixels}
        self._model = model
        self._totals = {name: share.copy() for name, share in shares.items()}
        self._left = {step.name: dict(enumerate(step.terms)) for step in model.program.linears}

    def ahead(self, steps: Sequence[Linear | PublicMap]) -> None:
        """On one thread: the exchange has the others."""
        for step in steps:
            if isinstance(step, Linear):
                self._add_known(step, threads=1)
            elif all(source in self.tensors for source in step.sources):
                self.finish(step)

    def finish(self, step: Linear | PublicMap) -> None:
        """Puts the result among the tensors."""
        if isinstance(step, Linear):
            self._add_known(step, self._model.threads)
            assert not self._left[step.name]
            self.tensors[step.name] = self._totals[step.name]
        elif step.name not in self.tensors:
            constants = self._model.constants.get(step.name)
            self.tensors[step.name] = apply_public(step, self.tensors, constants)

    def _add_known(self, step: Linear, threads: int) -> None:
        left = self._left[step.name]
        for number, term in list(left.items()):
            if term.source in self.tensors:
                self._model.add_term(step, number, self.tensors[term.source], self._totals[step.name], threads)
                del left[number]


def answer_masks(channel: Channel, model: ServerModel, server: rlwe.LinearServer, images: int) -> dict[str, Words]:
    """The server's half of the offline phase: for each linear map its share s, in the ring of this phase."""
    maps = model.maps_to_use(images)
    plan, whole, shares = maps.plan, maps.plan.whole(images), {}
    parsed: dict[Upload, list[rlwe.Ciphertexts]] = {}
    grouped = {u for name, uploads in plan.uploads.items() if plan.convs[name].is_grouped for u in uploads}
    uses = _use_counts(plan)
    for item in plan.schedule:
        if isinstance(item, Upload):
            with channel.section("offline", upload_section(item)):
                wire = bytes(channel.receive(plan.upload_bytes(item, whole)))
                parsed[item] = _parse(server, item, wire, whole, apart=item in grouped)
            continue
        with channel.section("offline", item):
            uploads = plan.uploads[item]
            inputs = [ciphertexts for upload in uploads for ciphertexts in parsed[upload]]
            reply, share = server.reply(model.conv_to_use(maps, item), inputs, whole)
            channel.send(reply)
            shares[item] = share[:images]
        for upload in set(uploads):
            uses[upload] -= 1
            if not uses[upload]:
                del parsed[upload]
    return shares


def _parse(
    server: rlwe.LinearServer, upload: Upload, wire: bytes, images: int, *, apart: bool
) -> list[rlwe.Ciphertexts]:
    try:
        if apart:
            return server.parse_apart(upload.layout, wire, images)
        return [server.parse(upload.layout, wire, images)]
    except ValueError as error:
        raise SphynxError(
            f"the client's upload is malformed ({error})",
            where=upload.tensor,
            remedy="The peer or the connection is broken: start a new session.",
        ) from None


def upload_section(upload: Upload) -> str:
    """Name an upload's section, apart from the tensor's own name, under which a ReLU's material is counted."""
    return f"{upload.tensor}/mask"


def _use_counts(plan: ProgramPlan) -> dict[Upload, int]:
    counts = dict.fromkeys(plan.distinct_uploads, 0)
    for uploads in plan.uploads.values():
        for upload in set(uploads):
            counts[upload] += 1
    return counts


class MaskedTensors:
    """The client's share of every tensor of a program: drawn for pixels and activations, decrypted for linear maps,
    computed for pools and sums when they are asked for."""

    def __init__(self, program: Program, drawn: Mapping[str, Words]) -> None:
        self._public = {step.name: step for step in program.steps if isinstance(step, PublicMap)}
        self._mask = ring_mask(program)
        self._shares = dict(drawn)

    def __getitem__(self, name: str) -> Words:
        waiting = [name]  # no recursion: a program may have any number of public maps, one behind the other
        while waiting:
            step = self._public.get(waiting[-1])
            missing = [] if step is None else [source for source in step.sources if source not in self._shares]
            if waiting[-1] in self._shares or step is None:
                waiting.pop()
            elif missing:
                waiting += missing
            else:
                self._shares[step.name] = apply_public(step, self._shares) & self._mask
        return self._shares[name]

    def __setitem__(self, name: str, share: Words) -> None:
        self._shares[name] = share

    def shifted(self, upload: Upload) -> Words:
        return (self[upload.tensor] << np.uint64(upload.shift)) & self._mask


def upload_masks(
    channel: Channel, plan: ProgramPlan, client: rlwe.LinearClient, tensors: MaskedTensors, images: int
) -> None:
    """The client's half of the offline phase: adds its share of every linear map to `tensors`.

    The masks that it drew are sent ahead, while the server already works on the first of them; but no more than the
    channel takes without waiting (see ahead.py).
    """
    ahead = deque(upload for upload in plan.distinct_uploads if upload in plan.drawn)
    unread_bytes = passed_bytes = 0  # sent ahead; those of them that the next reply proves to be read
    for item in plan.schedule:
        while ahead and (ahead[0] == item or unread_bytes + plan.upload_bytes(ahead[0], images) <= channel.ahead_bytes):
            unread_bytes += plan.upload_bytes(ahead[0], images)
            _send_upload(channel, client, tensors, ahead.popleft())
        if isinstance(item, Upload):
            if item in plan.drawn:
                passed_bytes += plan.upload_bytes(item, images)
            else:
                _send_upload(channel, client, tensors, item)
            continue
        with channel.section("offline", item):
            reply = bytes(channel.receive(plan.reply_bytes(item, images)))
            try:
                tensors[item] = client.decrypt(plan.convs[item], reply, images)
            except ValueError as error:
                raise SphynxError(
                    f"the server's reply is malformed ({error})",
                    where=item,
                    remedy="The peer or the connection is broken: start a new session.",
                ) from None
        unread_bytes, passed_bytes = unread_bytes - passed_bytes, 0


def _send_upload(channel: Channel, client: rlwe.LinearClient, tensors: MaskedTensors, upload: Upload) -> None:
    with channel.section("offline", upload_section(upload)):
        channel.send(client.encrypt(upload.layout, tensors.shifted(upload)))
