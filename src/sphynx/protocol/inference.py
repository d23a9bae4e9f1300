"""Private inference of a program (DELPHI's shape, eprint 2020/050; semi-honest): the outputs, bit for bit those of
sphynx.program.interpret, without the server seeing the image or the client the weights.

                   client (image)                                        server (weights W)

    setup          keys                    -- public key, OT set-up -->  (and back)
    offline        mask r for pixels and   ----- Enc(r << shift) ----->
    (no image      each activation         <----- Enc(W r - s) --------  share s of each linear map
    needed)        share W r - s           <-- ReLU material: labels, -> ReLU material
                                               masks, by OT
    = a Bundle     r, W r - s, material                                  s, material

    online         pixels x                ---------- x - r ---------->  linear maps: W (x - r) + s + bias
                   ReLU: holds W r - s,    <------ backend: gc -------> ReLU: holds the rest of x,
                   gets its r'                    or gmw                 gets y - r'
                          ...one exchange for each activation...
                   outputs = shares added  <-- its shares of outputs --     (or a label alone: answer.py)

Each party's half of a bundle is spent by one inference; whoever drives these classes burns it before `infer`. Bundles
can be prepared as a group: the images of all of them go through the linear maps at once, where they share ciphertexts
(`linear_plan.py`); then each gets ReLU material of its own, and nothing else in them is shared. For every group the
secrets come from a new generator, which the operating system seeds; a given one serves all, in tests.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.core import Prg, rlwe
from sphynx.errors import FailedCheckError, SphynxError
from sphynx.program.backends import Backend
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.program.interpret import joined_outputs, require_images
from sphynx.program.ir import INPUT, Curve, Linear, Program, PublicMap
from sphynx.protocol.activations import (
    activation_layers,
    entering,
    entering_shape,
    prepare_client,
    prepare_server,
    run_client,
    run_server,
    uses_up,
)
from sphynx.protocol.answer import (
    ANSWER,
    AnswerLayer,
    garble_answer,
    learn,
    receive_answer_tables,
    reveal,
    send_choices,
    take_choices,
)
from sphynx.protocol.bundle import Bundle, identify, mask_name, share_name
from sphynx.protocol.channel import Channel, Section
from sphynx.protocol.group import OwnTensors, fill_up, own_copy, places
from sphynx.protocol.linear import (
    MaskedTensors,
    ServerModel,
    ServerPass,
    answer_masks,
    draw_mask,
    ring_mask,
    upload_masks,
)
from sphynx.protocol.linear_plan import plan_group, plan_images, plan_program
from sphynx.protocol.message_sizes import check_messages
from sphynx.protocol.ots import (
    ClientOts,
    ServerOts,
    add_up_client,
    add_up_server,
    choose_client,
    choose_server,
    set_up_client,
    set_up_server,
)
from sphynx.protocol.ring_messages import receive_tensor, send_tensor
from sphynx.protocol.verify.parties import CheckedClient, CheckedServer, Judging, checked_messages
from sphynx.protocol.verify.plan import CheckPlan
from sphynx.threads import Helper

MASKED_PICTURE = Section("online", INPUT)  # in it the client sends the one message that depends on the picture


class InferenceServer:
    """One connection's server side. `prepare` and `infer` answer the client's calls of the same name."""

    def __init__(
        self, model: ServerModel, channel: Channel, prg: Prg | None = None, *, judging: Judging = nullcontext
    ) -> None:
        """Every verdict on a client that need not be trusted is found inside `judging`, before it has an effect."""
        self._model, self._channel, self._prg = model, channel, prg
        self._session: tuple[rlwe.LinearServer, ServerOts] | None = None
        self._checked: CheckedServer | None = None
        if model.check:
            self._checked = CheckedServer(model.program, model.weights, model.check, judging)
        self._has_refused = False

    def prepare(self, bundle_id: bytes, backend: Backend, batch: int = 1, made: Extensions = SOFTSPOKEN) -> Bundle:
        return self.prepare_group([bundle_id], backend, batch, made)[0]

    def prepare_group(
        self, bundle_ids: Sequence[bytes], backend: Backend, batch: int = 1, made: Extensions = SOFTSPOKEN
    ) -> list[Bundle]:
        """Prepare bundles of `batch` images each, all or none, by OTs that are extended this way."""
        return list(self.prepare_each(bundle_ids, backend, batch, made))

    def prepare_each(
        self, bundle_ids: Sequence[bytes], backend: Backend, batch: int = 1, made: Extensions = SOFTSPOKEN
    ) -> Iterator[Bundle]:
        """Prepare a group, and give each bundle as soon as it is made: whoever writes it need not hold the others."""
        with self._ending_at_a_failure():
            yield from self._prepare_each(bundle_ids, backend, batch, made)

    def infer(self, bundle: Bundle) -> None:
        with self._ending_at_a_failure():
            self._infer(bundle)

    @contextmanager
    def _ending_at_a_failure(self) -> Iterator[None]:
        """A client that failed a check may know something of the offset: nothing is done with it any more."""
        if self._has_refused:
            raise FailedCheckError("this client has already failed a check", where="session", remedy="Connect again.")
        try:
            yield
        except FailedCheckError:
            self._has_refused, self._session = True, None
            raise

    def _prepare_each(
        self, bundle_ids: Sequence[bytes], backend: Backend, batch: int, made: Extensions
    ) -> Iterator[Bundle]:
        model, channel, images = self._model, self._channel, len(bundle_ids) * batch
        layers, answer = activation_layers(model.program, batch), AnswerLayer.planned(model.program, batch)
        more = _other_messages(model.program, model.check, answer, backend, batch)
        check_messages(plan_images(model.offline, images), layers, backend, images, more)

        def empty(bundle_id: bytes) -> Bundle:
            return Bundle(bundle_id, model.program.content_hash, "server", backend, batch, {}, str(model.check or ""))

        first = empty(bundle_ids[0])
        keys, ots = self._session or self._set_up(self._prg or Prg(), identify(first))
        with channel.section("setup", "ots"):
            if self._checked is None and uses_up(layers, backend):
                ots = add_up_server(channel, ots)
            ots = choose_server(channel, ots, made)
        self._session = keys, ots
        prg = self._prg or Prg()
        keys, ots = keys.drawing_from(prg), replace(ots, prg=prg)
        shares = answer_masks(channel, model, keys, images)

        def one_bundle(bundle_id: bytes, own: slice) -> Bundle:
            bundle = empty(bundle_id)
            ots.bind(identify(bundle))
            own_shares = {name: share[own] for name, share in shares.items()}
            bundle.arrays.update({share_name(name): model.with_bias(name, s) for name, s in own_shares.items()})
            if self._checked is None:
                chosen = take_choices(channel, ots, answer) if answer else None
                materials = prepare_server(channel, ots, backend, layers)
                if answer and chosen:
                    materials[ANSWER] = garble_answer(channel, ots, answer, chosen)
            else:
                materials = self._checked.prepare(channel, ots, own_shares, bundle_id, batch)
            bundle.keep_materials(materials)
            return bundle

        yield from map(one_bundle, bundle_ids, places(batch, images))  # without a reference to the one before

    def _infer(self, bundle: Bundle) -> None:
        model, channel, program = self._model, self._channel, self._model.program
        bundle.check(program, "server", str(model.check or ""))
        shapes = {name: (bundle.batch, *shape) for name, shape in program.shapes.items()}
        shares = {s.name: bundle.array(share_name(s.name), shapes[s.name], model.dtype) for s in program.linears}
        layers = activation_layers(program, bundle.batch)
        following, materials = _linear_after(program), bundle.materials()
        checked = self._checked.online(bundle.bundle_id, bundle.batch, materials) if self._checked else None
        with channel.section("online", INPUT):
            masked = receive_tensor(channel, program, shapes[INPUT])
            if checked:
                checked.hear_pixels(channel, masked)
            linears = ServerPass(model, shares, masked.astype(model.dtype))
        tensors = linears.tensors
        with Helper() as helper:
            for step in program.steps:
                with channel.section("online", step.name):
                    if isinstance(step, Linear | PublicMap):
                        linears.finish(step)
                    else:
                        assert not isinstance(step, Curve)
                        x = entering(step, tensors).astype(np.uint64).reshape(-1) & ring_mask(program)
                        material = materials.get(step.name, {})
                        summed = helper.begin(partial(linears.ahead, following[step.name]))
                        if checked:
                            y = checked.run(channel, step.name, x)
                        else:
                            y = run_server(channel, bundle.backend, layers[step.name], material, x)
                        summed.finish()
                        tensors[step.name] = y.reshape(shapes[step.name]).astype(model.dtype)
        answer = AnswerLayer.planned(program, bundle.batch)
        for number, name in enumerate(program.output_names):
            with channel.section("online", name):
                if checked and not number:
                    checked.judge(channel)
                if answer:
                    reveal(channel, answer, materials[ANSWER], tensors[name].astype(np.uint64))
                else:
                    send_tensor(channel, program, tensors[name])

    def _set_up(self, prg: Prg, context: bytes) -> tuple[rlwe.LinearServer, ServerOts]:
        params, channel = self._model.plan.params, self._channel
        with channel.section("setup", "keys"):
            public_key = bytes(channel.receive(params.public_key_bytes))
            try:
                keys = rlwe.LinearServer(params, public_key, prg, self._model.threads)
            except ValueError as error:
                raise SphynxError(
                    f"the client's public key is malformed ({error})",
                    where="setup",
                    remedy="The peer or the connection is broken: start a new session.",
                ) from None
        with channel.section("setup", "ots"):
            return keys, set_up_server(channel, prg, context)


class InferenceClient:
    """One connection's client side. It knows the public program only."""

    def __init__(
        self,
        program: Program,
        channel: Channel,
        prg: Prg | None = None,
        *,
        threads: int = 0,
        check: CheckPlan | None = None,
    ) -> None:
        self.program, self._channel, self._prg, self._threads = program, channel, prg, threads
        self._checked = CheckedClient(program, check) if check else None
        self._check_plan = str(check or "")
        self._offline = check.wide(program) if check else program  # the ring of the linear phase
        self._session: tuple[rlwe.LinearClient, ClientOts] | None = None

    def prepare(self, bundle_id: bytes, backend: Backend, batch: int = 1, made: Extensions = SOFTSPOKEN) -> Bundle:
        return self.prepare_group([bundle_id], backend, batch, made)[0]

    def prepare_group(
        self, bundle_ids: Sequence[bytes], backend: Backend, batch: int = 1, made: Extensions = SOFTSPOKEN
    ) -> list[Bundle]:
        """Prepare bundles of `batch` images each, all or none, by OTs that are extended this way."""
        return list(self.prepare_each(bundle_ids, backend, batch, made))

    def prepare_each(
        self, bundle_ids: Sequence[bytes], backend: Backend, batch: int = 1, made: Extensions = SOFTSPOKEN
    ) -> Iterator[Bundle]:
        """Prepare a group, and give each bundle as soon as it is made: whoever writes it need not hold the others."""
        program, channel, images = self.program, self._channel, len(bundle_ids) * batch
        layers, plan = activation_layers(program, batch), plan_images(self._offline, images)
        answer = AnswerLayer.planned(program, batch)
        more = _other_messages(program, self._checked.plan if self._checked else None, answer, backend, batch)
        check_messages(plan, layers, backend, images, more)

        def empty(bundle_id: bytes) -> Bundle:
            return Bundle(bundle_id, program.content_hash, "client", backend, batch, {}, self._check_plan)

        first = empty(bundle_ids[0])
        keys, ots = self._session or self._set_up(self._prg or Prg(), identify(first))
        with channel.section("setup", "ots"):
            if self._checked is None and uses_up(layers, backend):
                ots = add_up_client(channel, ots)
            ots = choose_client(channel, ots, made)
        self._session = keys, ots
        prg = self._prg or Prg()
        keys, ots = keys.drawing_from(prg), replace(ots, prg=prg)
        drawn = {name: draw_mask(prg, program, name, images) for name in _masked_tensors(program)}
        filled = {name: fill_up(mask, plan.whole(images)) for name, mask in drawn.items()}
        tensors = MaskedTensors(self._offline, filled)
        upload_masks(channel, plan, keys, tensors, plan.whole(images))

        def one_bundle(bundle_id: bytes, own: slice) -> Bundle:
            bundle = empty(bundle_id)
            ots.bind(identify(bundle))
            masks = {name: own_copy(mask, own) for name, mask in drawn.items()}
            shares = {step.name: entering(step, OwnTensors(tensors, own)) for step in program.activations}
            last = {name: own_copy(tensors[name], own) for name in program.output_names}
            if self._checked is None:
                labels = send_choices(channel, ots, answer, last[program.output_names[0]]) if answer else None
                materials = prepare_client(channel, ots, backend, layers, shares, masks)
                if answer and labels is not None:
                    materials[ANSWER] = receive_answer_tables(channel, answer, labels)
            else:
                materials = self._checked.prepare(channel, ots, {**shares, **last}, masks, bundle_id, batch)
            bundle.arrays.update({mask_name(name): mask for name, mask in masks.items()})
            ring = ring_mask(program)
            bundle.arrays.update({share_name(name): share & ring for name, share in (shares | last).items()})
            bundle.keep_materials(materials)
            return bundle

        yield from map(one_bundle, bundle_ids, places(batch, images))  # without a reference to the one before

    def most_together(self, batch: int) -> int:
        """Count the bundles that make a group: as many as have images for one ciphertext."""
        return max(1, plan_group(self._offline).images // batch)

    def infer(self, bundle: Bundle, pixels: NDArray[Any]) -> NDArray[np.int64]:
        """The program's integers (batch, channels, height, width) to those of its outputs, (batch, numbers), or to the
        label that it reveals, (batch, 1)."""
        program, channel = self.program, self._channel
        bundle.check(program, "client", self._check_plan)
        require_images(program, pixels, bundle.batch)
        shapes = {name: (bundle.batch, *shape) for name, shape in program.shapes.items()}
        masks = {name: bundle.array(mask_name(name), shapes[name], np.uint64) for name in _masked_tensors(program)}
        layers = activation_layers(program, bundle.batch)
        entered = {step.name: entering_shape(program, step, bundle.batch) for step in program.activations}
        entered.update({name: shapes[name] for name in program.output_names})
        shares = {name: bundle.array(share_name(name), shape, np.uint64) for name, shape in entered.items()}
        materials = bundle.materials()
        checked = self._checked.online(bundle.bundle_id, bundle.batch, materials) if self._checked else None
        with channel.section("online", INPUT):
            send_tensor(channel, program, pixels.astype(np.uint64) - masks[INPUT])
            if checked:
                checked.say_pixels(channel, pixels.astype(np.uint64), masks[INPUT])
        for name, layer in layers.items():
            with channel.section("online", name):
                own, new_mask = shares[name].reshape(-1), masks[name].reshape(-1)
                if checked:
                    checked.run(channel, name)
                    continue
                run_client(channel, bundle.backend, layer, materials.get(name, {}), own, new_mask)
        outputs, answer = {}, AnswerLayer.planned(program, bundle.batch)
        for number, name in enumerate(program.output_names):
            with channel.section("online", name):
                if checked and not number:
                    checked.finish(channel)
                if answer:
                    return learn(channel, answer, materials[ANSWER])[:, None]
                total = receive_tensor(channel, program, shapes[name]) + shares[name]
            # The sign is the ring's highest bit.
            unused = np.int64(64 - program.ring_bits)
            outputs[name] = (total.view(np.int64) << unused) >> unused
        return joined_outputs(program, outputs)

    def _set_up(self, prg: Prg, context: bytes) -> tuple[rlwe.LinearClient, ClientOts]:
        channel = self._channel
        with channel.section("setup", "keys"):
            keys = rlwe.LinearClient(plan_program(self._offline).params, prg, self._threads)
            channel.send(keys.public_key())
        with channel.section("setup", "ots"):
            return keys, set_up_client(channel, prg, context)


def _other_messages(
    program: Program, check: CheckPlan | None, answer: AnswerLayer | None, backend: Backend, images: int
) -> Iterator[tuple[str, int]]:
    """Bytes of messages that do not depend on the backend, by name."""
    if check:
        yield from checked_messages(program, check, backend, images)
    if answer:
        yield from answer.message_sizes()


def _linear_after(program: Program) -> dict[str, list[Linear | PublicMap]]:
    """List for each activation the linear and public maps up to the next one."""
    following: dict[str, list[Linear | PublicMap]] = {}
    current: list[Linear | PublicMap] = []
    for step in program.steps:
        if isinstance(step, Linear | PublicMap):
            current.append(step)
        else:
            current = following[step.name] = []
    return following


def _masked_tensors(program: Program) -> Iterator[str]:
    """Tensors whose share the client draws."""
    yield INPUT
    yield from (step.name for step in program.activations)
