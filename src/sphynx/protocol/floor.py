"""Signed truncation layers on additive shares: x >> f, an exact floor, for |x| < 2^(w-1).

    x  --+2^(w-1): in [0, 2^w)-->  truncate as a number of w + 1 bits (truncate.py)  --minus 2^(w-1-f)-->  x >> f

The offset and what it becomes are the server's to add: the client's share stays as it is known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sphynx.errors import InputError
from sphynx.protocol.arithmetic import OnePart, Plan, part_of
from sphynx.protocol.channel import Channel
from sphynx.protocol.relu_layer import Arrays, Words
from sphynx.protocol.truncate import Truncation, truncate_client, truncate_server

_PART = "truncation"


@dataclass(frozen=True)
class FloorLayer(OnePart):
    """Public. w: -2^(w-1) <= x < 2^(w-1), k: the ring's width, f: the bits that a program's Truncate step drops."""

    name: str
    w: int
    k: int
    f: int
    count: int

    def __post_init__(self) -> None:
        if not (1 <= self.f < self.w < self.k <= 64 and self.count > 0):
            raise InputError(
                f"{self.count:,} truncations by {self.f} of {self.w} bits in a ring of {self.k}: a signed truncation "
                "must leave a bit, and needs a ring that is wider than its range",
                where=self.name,
                remedy="Compile the network again.",
            )

    @property
    def truncation(self) -> Truncation:
        return Truncation(self.w + 1, self.k, self.f, self.count)

    @property
    def parts(self) -> list[tuple[str, Plan]]:
        return [(_PART, self.truncation)]

    def server(self, channel: Channel, material: Arrays, x: Words) -> Words:
        """The server's shares of x >> f, from its shares of x; both of shape (count,)."""
        return floor_server(channel, self.truncation, part_of(material, _PART), x)

    def client(self, channel: Channel, material: Arrays, x: Words, new_mask: Words) -> None:
        truncate_client(channel, self.truncation, part_of(material, _PART), x, new_mask)


def floor_server(channel: Channel, plan: Truncation, material: Arrays, x: Words) -> Words:
    """Truncate x of w - 1 bits and a sign, w being the plan's."""
    offset = np.uint64(1 << (plan.w - 2))
    y = truncate_server(channel, plan, material, x + offset)
    return (y - (offset >> np.uint64(plan.f))) & np.uint64(2**plan.k - 1)
