"""Layers that are made of parts, each on shares that the client knows beforehand: squares, signed truncations, gates.

Offline is one round trip for all layers, every part in a message of its own; what gates need of the server before it
is sent for all of them at the start. Online each kind of layer puts its parts together (square.py, floor.py, gate.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol

from sphynx.core import Prg, ot
from sphynx.protocol.ahead import Ask, answers_ahead
from sphynx.protocol.channel import Channel
from sphynx.protocol.cross_product import Squaring, SquaringRequest, answer_squaring
from sphynx.protocol.gating import Gating, GatingOffer, GatingRequest, accepted_offer
from sphynx.protocol.ots import ClientOts, OtCount, ServerOts, reserve_client, reserve_server
from sphynx.protocol.relu_layer import Arrays, Words
from sphynx.protocol.truncate import Truncation, TruncationRequest, answer_truncation

Plan = Truncation | Squaring | Gating


class ArithmeticLayer(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def parts(self) -> list[tuple[str, Plan]]:
        """The parts in the order in which they run."""

    def fresh_masks(self, prg: Prg) -> Arrays:
        """Draw the client's masks between parts."""

    def entering(self, part: str, material: Arrays, x: Words) -> Words:
        """The client's share that a part reads; x is that of the layer."""


class OnePart:
    """A layer of one part: what enters it enters the part, and there is nothing to mask between parts."""

    def fresh_masks(self, prg: Prg) -> Arrays:  # noqa: ARG002 - see ArithmeticLayer
        return {}

    def entering(self, part: str, material: Arrays, x: Words) -> Words:  # noqa: ARG002 - the same
        return x


def ot_count(layers: Sequence[ArithmeticLayer]) -> OtCount:
    """Count the OTs of all parts."""
    return sum((plan.ot_count for layer in layers for _, plan in layer.parts), OtCount())


def prepare_server(channel: Channel, ots: ServerOts, layers: Sequence[ArithmeticLayer]) -> list[Arrays]:
    offers: deque[GatingOffer] = deque()
    reserve_server(channel, ots, ot_count(layers))
    for layer, gating in _gatings(layers):
        with channel.section("offline", layer.name):
            offers.append(GatingOffer(gating, ots))
            channel.send(*offers[-1].message)
    materials = []
    for layer in layers:
        material: Arrays = {}
        with channel.section("offline", layer.name):
            for part, plan in layer.parts:
                request = channel.receive(plan.request_bytes(ots.made))
                if isinstance(plan, Truncation):
                    answer, arrays = answer_truncation(plan, ots, request)
                elif isinstance(plan, Gating):
                    answer, arrays = offers.popleft().answer(ots, request)
                else:
                    answer, arrays = answer_squaring(plan, ots, request)
                channel.send(*answer)
                material |= _with_prefix(part, arrays)
        materials.append(material)
    return materials


def prepare_client(
    channel: Channel, ots: ClientOts, layers: Sequence[ArithmeticLayer], shares: Sequence[Words]
) -> list[Arrays]:
    materials = [layer.fresh_masks(ots.prg) for layer in layers]
    offered: deque[ot.PadPair] = deque()
    reserve_client(channel, ots, ot_count(layers))
    for layer, gating in _gatings(layers):
        with channel.section("offline", layer.name):
            offered.append(accepted_offer(gating, ots, channel.receive(gating.offer_bytes(ots.made))))
    requests: deque[TruncationRequest | SquaringRequest | GatingRequest] = deque()  # sent, the oldest at the front

    def request(plan: Plan, own: Words) -> TruncationRequest | SquaringRequest | GatingRequest:
        if isinstance(plan, Gating):
            return GatingRequest(plan, ots, own, offered.popleft())
        return TruncationRequest(plan, ots, own) if isinstance(plan, Truncation) else SquaringRequest(plan, ots, own)

    def send(name: str, plan: Plan, own: Words) -> None:
        with channel.section("offline", name):
            requests.append(request(plan, own))
            channel.send(*requests[-1].message)

    def receive(name: str, plan: Plan, part: str, material: Arrays) -> None:
        with channel.section("offline", name):
            answer = channel.receive(plan.answer_bytes(ots.made))
            material |= _with_prefix(part, requests.popleft().finish(answer))

    asks = [
        Ask(
            plan.request_bytes(ots.made),
            partial(send, layer.name, plan, layer.entering(part, material, x)),
            partial(receive, layer.name, plan, part, material),
        )
        for layer, material, x in zip(layers, materials, shares, strict=True)
        for part, plan in layer.parts
    ]
    for _received in answers_ahead(channel.ahead_bytes, asks):
        pass
    return materials


def _gatings(layers: Sequence[ArithmeticLayer]) -> Iterator[tuple[ArithmeticLayer, Gating]]:
    return ((layer, plan) for layer in layers for _, plan in layer.parts if isinstance(plan, Gating))


def part_of(material: Arrays, part: str) -> Arrays:
    prefix = f"{part}/"
    return {name.removeprefix(prefix): array for name, array in material.items() if name.startswith(prefix)}


def _with_prefix(part: str, arrays: Arrays) -> Arrays:
    return {f"{part}/{name}": array for name, array in arrays.items()}
