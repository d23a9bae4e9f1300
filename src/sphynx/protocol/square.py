"""Square layers on additive shares: (x >> before)^2 >> after, both shifts exact floors of signed integers.

    x, |x| < 2^(w-1)  --+2^(w-1), truncate, -2^(w-1-before)-->  s  --square-->  s^2 >= 0  --truncate-->  y

The client's share is known beforehand at every arrow: x_c, then two masks that it draws, last the new mask r'. A
truncation by 0 is left out. Offline is one round trip for all layers, every part in a message of its own. Online, each
part's messages (truncate.py, cross_product.py) one after the other: at most 8 + ceil(log2 before) + ceil(log2 after).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from sphynx.core import Prg
from sphynx.errors import InputError
from sphynx.protocol.ahead import Ask, answers_ahead
from sphynx.protocol.channel import Channel
from sphynx.protocol.cross_product import Squaring, SquaringRequest, answer_squaring, square_client, square_server
from sphynx.protocol.ots import ClientOts, ServerOts
from sphynx.protocol.relu_layer import Arrays, Words
from sphynx.protocol.truncate import (
    Truncation,
    TruncationRequest,
    answer_truncation,
    truncate_client,
    truncate_server,
)


@dataclass(frozen=True)
class SquareLayer:
    """Public. w: |x| < 2^(w-1), k: the ring's width, and the truncations of a program's Square step."""

    name: str
    w: int
    k: int
    before: int
    after: int
    count: int

    def __post_init__(self) -> None:
        faults = {
            f"{self.count} squares on {self.w} bits in a ring of {self.k}": not (
                1 <= self.w <= self.k <= 64 and self.count > 0
            ),
            f"it truncates {self.before} of {self.w} bits before squaring": not 0 <= self.before < self.w,
            "a truncation before squaring needs a ring wider than its input": self.before > 0 and self.w == self.k,
            f"a square of up to {self.square_bits} bits does not fit the ring of {self.k}": self.square_bits > self.k,
            f"it truncates {self.after} of {self.square_bits} bits after squaring": not (
                0 <= self.after < max(1, self.square_bits)
            ),
        }
        for fault, found in faults.items():
            if found:
                raise InputError(fault, where=self.name, remedy="Truncate more before squaring, or use a wider ring.")

    @property
    def square_bits(self) -> int:
        """0 <= s^2 < 2^(square_bits - 1): s reaches -2^(w-1-before)."""
        return 2 * (self.w - self.before)

    @property
    def first(self) -> Truncation | None:
        return Truncation(self.w + 1, self.k, self.before, self.count) if self.before else None

    @property
    def squaring(self) -> Squaring:
        return Squaring(self.k, self.count)

    @property
    def second(self) -> Truncation | None:
        return Truncation(self.square_bits, self.k, self.after, self.count) if self.after else None


class SquareServer:
    def offline(self, channel: Channel, ots: ServerOts, layers: Sequence[SquareLayer]) -> list[Arrays]:
        materials = []
        for layer in layers:
            material: Arrays = {}
            with channel.section("offline", layer.name):
                for part, plan in _parts(layer):
                    request = channel.receive(plan.request_bytes)
                    if isinstance(plan, Truncation):
                        answer, arrays = answer_truncation(plan, ots, request)
                    else:
                        answer, arrays = answer_squaring(plan, ots, request)
                    channel.send(*answer)
                    material |= _named(part, arrays)
            materials.append(material)
        return materials

    def online(self, channel: Channel, layer: SquareLayer, material: Arrays, x: Words) -> Words:
        """The server's shares y - r', from its shares x; both of shape (count,)."""
        if layer.first:
            offset = np.uint64(1 << (layer.w - 1))
            x = truncate_server(channel, layer.first, _part(material, "first"), x + offset)
            x -= offset >> np.uint64(layer.before)
        x = square_server(channel, layer.squaring, _part(material, "squaring"), x)
        return truncate_server(channel, layer.second, _part(material, "second"), x) if layer.second else x


class SquareClient:
    def offline(
        self,
        channel: Channel,
        ots: ClientOts,
        layers: Sequence[SquareLayer],
        shares: Sequence[Words],
        new_masks: Sequence[Words],  # noqa: ARG002 - needed online only
    ) -> list[Arrays]:
        materials = [_random_masks(layer, ots.prg) for layer in layers]
        requests: deque[TruncationRequest | SquaringRequest] = deque()  # sent, the oldest at the front

        def send(name: str, plan: Truncation | Squaring, own: Words) -> None:
            with channel.section("offline", name):
                kind = TruncationRequest if isinstance(plan, Truncation) else SquaringRequest
                requests.append(kind(plan, ots, own))  # type: ignore[arg-type]  # its own kind
                channel.send(*requests[-1].message)

        def receive(name: str, plan: Truncation | Squaring, part: str, material: Arrays) -> None:
            with channel.section("offline", name):
                answer = channel.receive(plan.answer_bytes)
                material |= _named(part, requests.popleft().finish(answer))

        asks = [
            Ask(
                plan.request_bytes,
                partial(send, layer.name, plan, _entering(part, layer, material, x)),
                partial(receive, layer.name, plan, part, material),
            )
            for layer, material, x in zip(layers, materials, shares, strict=True)
            for part, plan in _parts(layer)
        ]
        for _received in answers_ahead(channel.ahead_bytes, asks):
            pass
        return materials

    def online(self, channel: Channel, layer: SquareLayer, material: Arrays, x: Words, new_mask: Words) -> None:
        """With the x of `offline`; the client's share of the result is new_mask."""
        s, square = _entering("squaring", layer, material, x), _entering("second", layer, material, x)
        if layer.first:
            truncate_client(channel, layer.first, _part(material, "first"), x, s)
        own = _part(material, "squaring")
        square_client(channel, layer.squaring, own, s, square if layer.second else new_mask)
        if layer.second:
            truncate_client(channel, layer.second, _part(material, "second"), square, new_mask)


def _parts(layer: SquareLayer) -> list[tuple[str, Truncation | Squaring]]:
    parts = [("first", layer.first), ("squaring", layer.squaring), ("second", layer.second)]
    return [(name, plan) for name, plan in parts if plan is not None]


def _random_masks(layer: SquareLayer, prg: Prg) -> Arrays:
    """The client's shares of s and of s^2."""
    masks = np.empty((2, layer.count), np.uint64)
    prg.fill_words(masks)
    masks &= layer.squaring.ring_mask
    return {"mask of s": masks[0], "mask of square": masks[1]}


def _entering(part: str, layer: SquareLayer, material: Arrays, x: Words) -> Words:
    """The client's share that a part reads."""
    if part == "second":
        return material["mask of square"]
    return material["mask of s"] if part == "squaring" and layer.first else x


def _named(part: str, arrays: Arrays) -> Arrays:
    return {f"{part}/{name}": array for name, array in arrays.items()}


def _part(material: Arrays, part: str) -> Arrays:
    prefix = f"{part}/"
    return {name.removeprefix(prefix): array for name, array in material.items() if name.startswith(prefix)}
