"""Square layers on additive shares: (x >> before)^2 >> after, both shifts exact floors of signed integers.

    x, |x| < 2^(w-1)  --+2^(w-1), truncate, -2^(w-1-before)-->  s  --square-->  s^2 >= 0  --truncate-->  y

The client's share is known beforehand at every arrow: x_c, then two masks that it draws, last the new mask r'. A
truncation by 0 is left out. Offline as in arithmetic.py. Online, each part's messages (truncate.py, cross_product.py)
one after the other: at most 8 + L(before) + L(after), L(f) = ceil(log2(ceil(f / 4))).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sphynx.core import Prg
from sphynx.errors import InputError
from sphynx.protocol.arithmetic import Plan, part_of
from sphynx.protocol.channel import Channel
from sphynx.protocol.cross_product import Squaring, square_client, square_server
from sphynx.protocol.floor import floor_server
from sphynx.protocol.relu_layer import Arrays, Words
from sphynx.protocol.truncate import Truncation, truncate_client, truncate_server


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

    @property
    def parts(self) -> list[tuple[str, Plan]]:
        parts = [("first", self.first), ("squaring", self.squaring), ("second", self.second)]
        return [(name, plan) for name, plan in parts if plan is not None]

    def fresh_masks(self, prg: Prg) -> Arrays:
        """The client's shares of s and of s^2."""
        masks = np.empty((2, self.count), np.uint64)
        prg.fill_words(masks)
        masks &= self.squaring.ring_mask
        return {"mask of s": masks[0], "mask of square": masks[1]}

    def entering(self, part: str, material: Arrays, x: Words) -> Words:
        if part == "second":
            return material["mask of square"]
        return material["mask of s"] if part == "squaring" and self.first else x

    def server(self, channel: Channel, material: Arrays, x: Words) -> Words:
        """The server's shares y - r', from its shares x; both of shape (count,)."""
        if self.first:
            x = floor_server(channel, self.first, part_of(material, "first"), x)
        x = square_server(channel, self.squaring, part_of(material, "squaring"), x)
        return truncate_server(channel, self.second, part_of(material, "second"), x) if self.second else x

    def client(self, channel: Channel, material: Arrays, x: Words, new_mask: Words) -> None:
        """Run the client's part with the x of `offline`; the client's share of the result is new_mask."""
        s, square = self.entering("squaring", material, x), self.entering("second", material, x)
        if self.first:
            truncate_client(channel, self.first, part_of(material, "first"), x, s)
        own = part_of(material, "squaring")
        square_client(channel, self.squaring, own, s, square if self.second else new_mask)
        if self.second:
            truncate_client(channel, self.second, part_of(material, "second"), square, new_mask)
