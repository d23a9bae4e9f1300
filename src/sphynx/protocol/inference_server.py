"""The server's side of a private inference: see inference.py for the messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial

import numpy as np

from sphynx.core import Prg, rlwe
from sphynx.errors import FailedCheckError, SphynxError
from sphynx.program.backends import Backend
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.program.ir import INPUT, Curve, Linear, Program, PublicMap
from sphynx.protocol.activations import activation_layers, entering, prepare_server, run_server, uses_up
from sphynx.protocol.answer import ANSWER, AnswerLayer, garble_answer, reveal, take_choices
from sphynx.protocol.bundle import Bundle, identify, share_name
from sphynx.protocol.channel import Channel
from sphynx.protocol.group import own_copy, places
from sphynx.protocol.inference import Party, other_messages
from sphynx.protocol.linear import ServerModel, ServerPass, answer_masks
from sphynx.protocol.linear_plan import plan_images
from sphynx.protocol.message_sizes import check_messages
from sphynx.protocol.ots import ServerOts, add_up_server, choose_server, set_up_server
from sphynx.protocol.ring_messages import receive_tensor, send_tensor
from sphynx.protocol.shares import ring_mask
from sphynx.protocol.verify.parties import CheckedServer, Judging
from sphynx.threads import Helper


class InferenceServer(Party):
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

    def prepare_each(
        self, bundle_ids: Sequence[bytes], backend: Backend, batch: int = 1, made: Extensions = SOFTSPOKEN
    ) -> Iterator[Bundle]:
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
        more = other_messages(model.program, model.check, answer, backend, batch)
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
        masks = answer_masks(channel, model, keys, images)
        shares = {name: model.with_bias(name, mask) for name, mask in masks.items()}
        if self._checked is None:
            masks.clear()  # twice as wide, and nobody asks for them again

        def one_bundle(bundle_id: bytes, own: slice) -> Bundle:
            bundle = empty(bundle_id)
            ots.bind(identify(bundle))
            bundle.arrays.update({share_name(name): own_copy(share, own) for name, share in shares.items()})
            if self._checked is None:
                chosen = take_choices(channel, ots, answer) if answer else None
                materials = prepare_server(channel, ots, backend, layers)
                if answer and chosen:
                    materials[ANSWER] = garble_answer(channel, ots, answer, chosen)
            else:
                own_masks = {name: mask[own] for name, mask in masks.items()}
                materials = self._checked.prepare(channel, ots, own_masks, bundle_id, batch)
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
