"""The client's side of a private inference: see inference.py for the messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.core import Prg, rlwe
from sphynx.program.backends import Backend
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.program.interpret import joined_outputs, require_images
from sphynx.program.ir import INPUT, Program
from sphynx.protocol.activations import activation_layers, entering, entering_shape, prepare_client, run_client, uses_up
from sphynx.protocol.answer import ANSWER, AnswerLayer, learn, receive_answer_tables, send_choices
from sphynx.protocol.bundle import Bundle, identify, mask_name, share_name
from sphynx.protocol.channel import Channel
from sphynx.protocol.group import OwnTensors, fill_up, own_copy, places
from sphynx.protocol.inference import Party, other_messages
from sphynx.protocol.linear import MaskedTensors, upload_masks
from sphynx.protocol.linear_plan import plan_group, plan_images, plan_program
from sphynx.protocol.message_sizes import check_messages
from sphynx.protocol.ots import ClientOts, add_up_client, choose_client, set_up_client
from sphynx.protocol.ring_messages import receive_tensor, send_tensor
from sphynx.protocol.shares import draw_mask, ring_mask
from sphynx.protocol.verify.parties import CheckedClient
from sphynx.protocol.verify.plan import CheckPlan


class InferenceClient(Party):
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

    def prepare_each(
        self, bundle_ids: Sequence[bytes], backend: Backend, batch: int = 1, made: Extensions = SOFTSPOKEN
    ) -> Iterator[Bundle]:
        program, channel, images = self.program, self._channel, len(bundle_ids) * batch
        layers, plan = activation_layers(program, batch), plan_images(self._offline, images)
        answer = AnswerLayer.planned(program, batch)
        more = other_messages(program, self._checked.plan if self._checked else None, answer, backend, batch)
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


def _masked_tensors(program: Program) -> Iterator[str]:
    """Tensors whose share the client draws."""
    yield INPUT
    yield from (step.name for step in program.activations)
