"""Gate layers on additive shares: a map times one number for each of its channels, modulo 2^k. No range is needed.

What enters is the map and behind it the gates, in one array.
"""

from __future__ import annotations

from dataclasses import dataclass

from sphynx.errors import InputError
from sphynx.protocol.arithmetic import OnePart, Plan, part_of
from sphynx.protocol.channel import Channel
from sphynx.protocol.gating import Gating, gate_client, gate_server
from sphynx.protocol.relu_layer import Arrays, Words

_PART = "gating"


@dataclass(frozen=True)
class GateLayer(OnePart):
    """Public. k: the ring's width; a batch's images have gates of their own."""

    name: str
    k: int
    gates: int
    length: int

    def __post_init__(self) -> None:
        if not (1 <= self.k <= 64 and min(self.gates, self.length) > 0):
            raise InputError(
                f"its {self.gates:,} gates of {self.length:,} elements do not fit a ring of {self.k} bits",
                where=self.name,
                remedy="Compile the network again.",
            )

    @property
    def gating(self) -> Gating:
        return Gating(self.k, self.gates, self.length)

    @property
    def parts(self) -> list[tuple[str, Plan]]:
        return [(_PART, self.gating)]

    def server(self, channel: Channel, material: Arrays, x: Words) -> Words:
        """The server's shares of the product, (gates * length,), from its shares of both factors."""
        return gate_server(channel, self.gating, part_of(material, _PART), x)

    def client(self, channel: Channel, material: Arrays, x: Words, new_mask: Words) -> None:
        gate_client(channel, self.gating, part_of(material, _PART), x, new_mask)
