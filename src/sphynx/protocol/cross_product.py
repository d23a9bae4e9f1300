"""Squares of shared ring elements whose client share is known before the inference.

    x^2 = x_s^2 + x_c^2 + 2 x_s x_c mod 2^k

Only x_s x_c needs a correlation: a random alpha of the server's and shares u_s + u_c = alpha x_c, by Gilboa's product:
one OT for each bit i of x_c carries alpha 2^i mod 2^k.

    offline  client -> server   request   OT extension, choices: the bits of x_c
             server -> client   answer    late tweak; corrections, k - i bits for bit i
    online   server -> client   z = x_s - alpha
             client -> server   y_c less the new mask, y_c = 2 (z x_c + u_c) + x_c^2

Semi-honest: z is masked by the uniform alpha, of which the client holds u_c alone, uniform by the OT's pads; what
the client returns is masked by its new mask.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sphynx.core import ot
from sphynx.core.bits import pack_ring, plane_words, slice_bits, unpack_ring
from sphynx.program.cost.ot_messages import BLOCK_BYTES, blocks_down
from sphynx.program.extensions import Extensions
from sphynx.protocol.channel import Channel
from sphynx.protocol.ots import ClientOts, OtCount, ServerOts
from sphynx.protocol.relu_layer import Arrays, Words
from sphynx.protocol.transport import Buffer

_TWO = np.uint64(2)


@dataclass(frozen=True)
class Squaring:
    """Public: the ring's width and how many elements."""

    k: int
    count: int

    @property
    def row(self) -> int:
        return 64 * plane_words(self.count)

    @property
    def ots(self) -> int:
        return self.k * self.row

    @property
    def uses_up(self) -> bool:
        """Return whether the OTs of `up` are needed."""
        return False

    @property
    def ot_count(self) -> OtCount:
        return OtCount(down=self.ots)

    def request_bytes(self, made: Extensions) -> int:
        return BLOCK_BYTES * blocks_down(self.ots, random_choices=False, made=made)

    @property
    def correction_bytes(self) -> tuple[int, ...]:
        """Sizes of the corrections, for each bit of x_c."""
        return tuple((self.count * (self.k - bit) + 7) // 8 for bit in range(self.k))

    def answer_bytes(self, made: Extensions) -> int:  # noqa: ARG002 - as the other parts
        return ot.TWEAK_BYTES + sum(self.correction_bytes)

    @property
    def ring_bytes(self) -> int:
        return (self.count * self.k + 7) // 8

    @property
    def ring_mask(self) -> np.uint64:
        return np.uint64(2**self.k - 1)

    def of_bit(self, bit: int) -> slice:
        """The OTs of a bit."""
        return slice(bit * self.row, bit * self.row + self.count)


def answer_squaring(plan: Squaring, ots: ServerOts, request: bytearray) -> tuple[list[Buffer], Arrays]:
    """(message to the client, the server's material)."""
    message = np.frombuffer(request, np.uint64).reshape(-1, 2)
    tweak, pads = ots.down.late_pads(message, plan.ots, random_choices=False)
    alpha, share = np.empty(plan.count, np.uint64), np.zeros(plan.count, np.uint64)
    ots.prg.fill_words(alpha)
    alpha &= plan.ring_mask
    corrections: list[Buffer] = [tweak]
    for bit in range(plan.k):
        own = ot.PadPair(pads.zeros[plan.of_bit(bit)], pads.ones[plan.of_bit(bit)])
        correction, products = ot.send_products(own, alpha, plan.k - bit)
        corrections.append(correction.data)
        share += products << np.uint64(bit)
    return corrections, {"alpha": alpha, "share": share & plan.ring_mask}


class SquaringRequest:
    """The client's side of the preprocessing: send `message`, then `finish` with the answer."""

    def __init__(self, plan: Squaring, ots: ClientOts, x_c: Words) -> None:
        self._plan = plan
        self._planes = slice_bits(x_c, plan.k)
        message, self._t = ots.down.correlated(self._planes.reshape(-1), plan.ots)
        self.message: list[Buffer] = [message.data]

    def finish(self, answer: bytearray) -> Arrays:
        plan, start = self._plan, ot.TWEAK_BYTES
        received = ot.received_pads(self._t, bytes(answer[:start]))
        share = np.zeros(plan.count, np.uint64)
        for bit, size in enumerate(plan.correction_bytes):
            packed = np.frombuffer(answer, np.uint8, size, start)
            pads = received[plan.of_bit(bit)]
            share += ot.receive_products(pads, self._planes[bit], packed, plan.k - bit) << np.uint64(bit)
            start += size
        return {"share": share & plan.ring_mask}


def square_server(channel: Channel, plan: Squaring, material: Arrays, x: Words) -> Words:
    """The server's share of x^2, the client's being its new mask."""
    channel.send(pack_ring((x - material["alpha"]) & plan.ring_mask, plan.k).data)
    reshared = unpack_ring(np.frombuffer(channel.receive(plan.ring_bytes), np.uint8), plan.k, plan.count)
    share: Words = material["share"]
    return (x * x + _TWO * share + reshared) & plan.ring_mask


def square_client(channel: Channel, plan: Squaring, material: Arrays, x: Words, new_mask: Words) -> None:
    z = unpack_ring(np.frombuffer(channel.receive(plan.ring_bytes), np.uint8), plan.k, plan.count)
    share: Words = material["share"]
    y = _TWO * (z * x + share) + x * x
    channel.send(pack_ring((y - new_mask) & plan.ring_mask, plan.k).data)
