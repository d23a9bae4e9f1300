"""Both parties' nonlinear layers where the client may be malicious: garbled circuits on committed numbers.

    offline    client -> server    OT extensions that commit it to its shares and masks (plan.commitments), and to
                                   random bits for its pixels (pixels.py)
               server -> client    products with secret factors (linear_check.py, pixels.py)
               client -> server    a hash of sums                          the verdict: a bundle, or a strike
               server -> client    late tweaks and tables (garbled_layer.py)
    online     client -> server    x - r, and its bits (nine for a pixel)
               ...                 as without this mode, signed truncations by circuits too
               client -> server    a hash over all output labels and the pixels' sums
               server -> client    its shares of the outputs, or the end of answer.py, after it compared

In garbled circuits the labels of the client's bits authenticate them; what is added is that these bits are those of
honest shares. docs/security/malicious-client.md has the argument and what remains.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from hmac import compare_digest
from typing import Literal

import numpy as np

from sphynx.core import Prg
from sphynx.errors import FailedCheckError
from sphynx.program.backends import Backend
from sphynx.program.convolve import Array
from sphynx.program.cost.ot_messages import BLOCK_BYTES, blocks_down
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.program.ir import INPUT, Program, Relu, Truncate
from sphynx.program.security import require_mode
from sphynx.protocol import garbled_layer
from sphynx.protocol.answer import ANSWER, AnswerLayer, garble_answer, receive_answer_tables
from sphynx.protocol.channel import Channel
from sphynx.protocol.garbled_layer import GarbledLayer
from sphynx.protocol.ots import ClientOts, OtCount, ServerOts, reserve_client, reserve_server
from sphynx.protocol.relu_layer import Arrays, range_bits
from sphynx.protocol.verify import linear_check
from sphynx.protocol.verify.adjoint import Factors
from sphynx.protocol.verify.linear_check import HASH_BYTES, hash_of_sums
from sphynx.protocol.verify.pixels import PixelCheck, draw_pixel_factors
from sphynx.protocol.verify.plan import CheckPlan, commitments
from sphynx.protocol.wires import Chunk, Wires, Words

PIXELS = "pixels check"  # the name of its material
Judging = Callable[[], AbstractContextManager[object]]  # a verdict on the client is found inside


def _fault(what: str) -> FailedCheckError:
    return FailedCheckError(
        f"the client's {what} failed the check",
        where="malicious-client",
        remedy="The client's software is changed or broken. Discard what was prepared on this connection.",
    )


def garbled_layers(program: Program, images: int) -> dict[str, GarbledLayer]:
    """The circuits of all activations: ReLUs and signed truncations, the others being refused."""
    layers = {}
    for step in program.activations:
        assert isinstance(step, Relu | Truncate)
        kind: Literal["relu", "floor"] = "relu" if isinstance(step, Relu) else "floor"
        count = images * program.shapes[step.name].size
        layers[step.name] = GarbledLayer(kind, range_bits(program, step), program.ring_bits, step.truncate, count)
    return layers


def checked_messages(program: Program, plan: CheckPlan, backend: Backend, images: int) -> Iterator[tuple[str, int]]:
    """Bytes of the messages that commit the client and test what it committed to; tables come in chunks. Refuses a
    backend whose shares nothing authenticates."""
    require_mode("malicious-client", backend, where="backend")
    for name, wires in commitments(program, plan, images).items():
        yield name, _request_bytes(wires, SOFTSPOKEN)
        yield name, linear_check.products_bytes(plan, wires)


def _request_bytes(wires: Wires, made: Extensions) -> int:
    return BLOCK_BYTES * blocks_down(wires.ots, random_choices=False, made=made)


def count_checked_ots(program: Program, plan: CheckPlan, images: int) -> OtCount:
    """Count the OTs of one bundle."""
    committed = sum(wires.ots for wires in commitments(program, plan, images).values())
    return OtCount(down=committed + PixelCheck.planned(program, plan, images).ots)


def _circuit_labels(wires: Wires, layer: GarbledLayer, blocks: Words, chunk: Chunk) -> Words:
    """Pick a group's wires that enter the circuits: the low w bits of the share, the bits of the mask."""
    own = wires.blocks(blocks, chunk)
    return np.concatenate([own[: layer.w], own[wires.widths[0] :]])


class LabelHash:
    """A hash over the halves of all output labels, in the order of evaluation, then over the pixels' sums."""

    def __init__(self, bundle_id: bytes) -> None:
        self._hash = hashlib.blake2b(bundle_id, digest_size=HASH_BYTES, person=b"sphynx labels")

    def add(self, halves: Words) -> None:
        self._hash.update(np.ascontiguousarray(halves).data)

    def finish(self, sums: Sequence[int], ring_bits: int) -> bytes:
        for total in sums:
            self._hash.update((total % (1 << ring_bits)).to_bytes(8, "little"))
        return self._hash.digest()


@dataclass
class CheckedServer:
    """One connection's server side. Its secret factors serve until the first failure."""

    program: Program = field(repr=False)
    weights: Mapping[str, Array] = field(repr=False)
    plan: CheckPlan
    judging: Judging = nullcontext
    _factors: dict[int, list[Factors]] = field(default_factory=dict, repr=False)  # by number of images

    def prepare(
        self, channel: Channel, ots: ServerOts, shares: Mapping[str, Words], bundle_id: bytes, images: int
    ) -> dict[str, Arrays]:
        """Material of every layer, and of the pixels. Raises FailedCheckError where the client's numbers are wrong."""
        program, plan, prg = self.program, self.plan, ots.prg
        groups, pixels = commitments(program, plan, images), PixelCheck.planned(self.program, self.plan, images)
        labels = {}
        reserve_server(channel, ots, count_checked_ots(program, plan, images))
        with channel.section("offline", "commitments"):
            for name, wires in groups.items():
                message = np.frombuffer(channel.receive(_request_bytes(wires, ots.made)), np.uint64).reshape(-1, 2)
                labels[name] = ots.down.correlated(message, wires.ots, random_choices=False)
        with channel.section("offline", PIXELS):
            phi = draw_pixel_factors(pixels, prg)
            materials = {PIXELS: pixels.server(channel, ots, phi)}
        with channel.section("offline", "check"):
            functionals = self._functionals(images, prg)
            sums = linear_check.expected_sums(functionals, shares, plan.ring_bits)
            for name, wires in groups.items():
                factors = [linear_check.group_factors(program, each, name) for each in functionals]
                own = linear_check.send_products(channel, ots, plan, wires, labels[name], factors)
                sums = [total - share for total, share in zip(sums, own, strict=True)]
            mask_factors = [[np.uint64(0) - each] for each in phi]
            own = linear_check.send_products(channel, ots, plan, groups[INPUT], labels[INPUT], mask_factors)
            materials[PIXELS]["mask sums"] = np.array(own, np.uint64)
            told = channel.receive(HASH_BYTES)
            with self.judging():
                if not compare_digest(told, hash_of_sums(bundle_id, sums, plan.ring_bits)):
                    self._factors.clear()
                    raise _fault("numbers")
        for name, layer in garbled_layers(program, images).items():
            with channel.section("offline", name):
                wires_of = partial(_circuit_labels, groups[name], layer)
                materials[name] = garbled_layer.garble(channel, ots, layer, labels[name], wires_of, halves=True)
        if answer := AnswerLayer.planned(program, images, plan.ring_bits):
            materials[ANSWER] = garble_answer(channel, ots, answer, labels[program.output_names[0]])
        return materials

    def online(self, bundle_id: bytes, images: int, parts: Mapping[str, Arrays]) -> OnlineServer:
        return OnlineServer(self.program, self.plan, bundle_id, images, parts, self.judging)

    def _functionals(self, images: int, prg: Prg) -> list[Factors]:
        if images not in self._factors:
            self._factors.clear()  # one set at a time: a client may ask for any number of batch sizes
            self._factors[images] = linear_check.draw_factors(self.program, self.weights, self.plan, images, prg)
        return self._factors[images]


def committed_numbers(
    program: Program, shares: Mapping[str, Words], masks: Mapping[str, Words]
) -> dict[str, list[Words]]:
    """List what the client commits to, by group (plan.commitments)."""
    numbers = {INPUT: [masks[INPUT].reshape(-1)]}
    for step in program.activations:
        numbers[step.name] = [shares[step.name].reshape(-1), masks[step.name].reshape(-1)]
    return {**numbers, **{name: [shares[name].reshape(-1)] for name in program.output_names}}


@dataclass(frozen=True)
class CheckedClient:
    """One connection's client side."""

    program: Program = field(repr=False)
    plan: CheckPlan

    def prepare(
        self,
        channel: Channel,
        ots: ClientOts,
        shares: Mapping[str, Words],
        masks: Mapping[str, Words],
        bundle_id: bytes,
        images: int,
    ) -> dict[str, Arrays]:
        """`shares` are of what enters each activation and of the outputs, modulo 2^K; `masks` of pixels and
        activations."""
        program, plan = self.program, self.plan
        groups, pixels = commitments(program, plan, images), PixelCheck.planned(program, plan, images)
        numbers = committed_numbers(program, shares, masks)
        labels = {}
        reserve_client(channel, ots, count_checked_ots(program, plan, images))
        with channel.section("offline", "commitments"):
            for name, wires in groups.items():
                message, labels[name] = ots.down.correlated(wires.choices(numbers[name]), wires.ots)
                channel.send(message.data)
        with channel.section("offline", PIXELS):
            bits, bit_labels = pixels.request(channel, ots)
            materials = {PIXELS: pixels.client(channel, bits, bit_labels)}
        with channel.section("offline", "check"):
            sums = [0] * plan.functionals
            for name, wires in groups.items():
                own = linear_check.receive_products(channel, plan, wires, labels[name], numbers[name])
                sums = [total + share for total, share in zip(sums, own, strict=True)]
            own = linear_check.receive_products(channel, plan, groups[INPUT], labels[INPUT], numbers[INPUT])
            materials[PIXELS]["mask sums"] = np.array(own, np.uint64)
            channel.send(hash_of_sums(bundle_id, sums, plan.ring_bits))
        for name, layer in garbled_layers(program, images).items():
            with channel.section("offline", name):
                own_labels = [_circuit_labels(groups[name], layer, labels[name], chunk) for chunk in layer.chunks()]
                kept = np.concatenate([part.reshape(-1, 2) for part in own_labels])
                materials[name] = {"labels": kept, **garbled_layer.receive_tables(channel, layer)}
        if answer := AnswerLayer.planned(program, images, plan.ring_bits):
            materials[ANSWER] = receive_answer_tables(channel, answer, labels[program.output_names[0]])
        return materials

    def online(self, bundle_id: bytes, images: int, parts: Mapping[str, Arrays]) -> OnlineClient:
        return OnlineClient(self.program, self.plan, bundle_id, images, parts)


class _Online:
    """One inference on either side: what goes into the hash at its end."""

    def __init__(
        self, program: Program, plan: CheckPlan, bundle_id: bytes, images: int, parts: Mapping[str, Arrays]
    ) -> None:
        self._plan, self._parts = plan, parts
        self._layers, self._pixels = garbled_layers(program, images), PixelCheck.planned(program, plan, images)
        self._hash = LabelHash(bundle_id)
        self._sums: list[int] = []

    def _digest(self) -> bytes:
        return self._hash.finish(self._sums, self._plan.ring_bits)


class OnlineServer(_Online):
    def __init__(
        self,
        program: Program,
        plan: CheckPlan,
        bundle_id: bytes,
        images: int,
        parts: Mapping[str, Arrays],
        judging: Judging,
    ) -> None:
        super().__init__(program, plan, bundle_id, images, parts)
        self._judging = judging

    def hear_pixels(self, channel: Channel, masked: Words) -> None:
        material = self._parts[PIXELS]
        message = channel.receive(self._pixels.planes_bytes)
        own = self._pixels.hear(material, message, masked.reshape(-1))
        self._sums = [-(total + int(mask)) for total, mask in zip(own, material["mask sums"], strict=True)]

    def run(self, channel: Channel, name: str, x: Words) -> Words:
        return garbled_layer.serve(channel, self._layers[name], self._parts[name], x, self._hash.add)

    def judge(self, channel: Channel) -> None:
        """Raise FailedCheckError, before anything of the outputs leaves, where the client did not evaluate honestly."""
        told = channel.receive(HASH_BYTES)
        with self._judging():
            if not compare_digest(told, self._digest()):
                raise _fault("labels or pixels")


class OnlineClient(_Online):
    def say_pixels(self, channel: Channel, pixels: Words, mask: Words) -> None:
        material = self._parts[PIXELS]
        message, own = self._pixels.say(material, pixels.reshape(-1), mask.reshape(-1))
        self._sums = [total + int(part) for total, part in zip(own, material["mask sums"], strict=True)]
        channel.send(message)

    def run(self, channel: Channel, name: str) -> None:
        layer, material = self._layers[name], self._parts[name]
        labels_of = partial(Wires(layer.count, (layer.w, layer.k)).blocks, material["labels"])
        garbled_layer.evaluate(channel, layer, material, labels_of, self._hash.add)

    def finish(self, channel: Channel) -> None:
        channel.send(self._digest())
