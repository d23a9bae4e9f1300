"""Products of shared maps with shared gates, one gate for each channel, both client shares known before the inference.

    x g = x_s g_s + x_c g_c + x_s g_c + x_c g_s mod 2^k

The two mixed products need correlations: random alpha (as long as x) and beta (as g) of the server's, and shares of
alpha g_c + beta x_c. Gilboa's product has one OT for each bit of a gate, whose two messages are as long as the
channel: OTs are counted by gates, bytes by elements. The pads are seeds of the long messages.

    offline  server -> client   offer     OT extension, the bits of beta being its random choices
             client -> server   request   OT extension, choices: the bits of g_c; corrections that carry x_c 2^i
             server -> client   answer    late tweak; corrections that carry alpha 2^i, k - i bits an element
    online   server -> client   x_s - alpha, g_s - beta
             client -> server   y_c less the new mask, y_c = (x_s - alpha) g_c + (g_s - beta) x_c + x_c g_c + its share

Semi-honest: corrections are masked by the pad that the other did not choose, what is opened by the uniform alpha and
beta, of which the client holds shares of products alone, and what the client returns by its new mask.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sphynx.core import ot
from sphynx.core.bits import pack_ring, plane_words, slice_bits, unpack_ring, unslice_bits
from sphynx.program.cost.ot_messages import BLOCK_BYTES, blocks_down, blocks_up
from sphynx.program.extensions import Extensions
from sphynx.protocol.channel import Channel
from sphynx.protocol.ots import ClientOts, OtCount, ServerOts
from sphynx.protocol.relu_layer import Arrays, Words
from sphynx.protocol.transport import Buffer

EXPANDED_WORDS = 1 << 16  # at a time: a call for each bit takes longer, all bits at once too much memory
_ONE = np.uint64(1)


@dataclass(frozen=True)
class Gating:
    """Public: the ring's width, how many gates, and how many elements each of them multiplies."""

    k: int
    gates: int
    length: int

    @property
    def count(self) -> int:
        return self.gates * self.length

    @property
    def row(self) -> int:
        return 64 * plane_words(self.gates)

    @property
    def ots(self) -> int:
        """One way; as many the other way."""
        return self.k * self.row

    @property
    def uses_up(self) -> bool:
        """Return whether the OTs of `up` are needed."""
        return True

    @property
    def ot_count(self) -> OtCount:
        return OtCount(self.ots, self.ots)

    def offer_bytes(self, made: Extensions) -> int:
        return BLOCK_BYTES * blocks_up(self.ots, made=made)

    def extension_bytes(self, made: Extensions) -> int:
        return BLOCK_BYTES * blocks_down(self.ots, random_choices=False, made=made)

    @property
    def correction_bytes(self) -> tuple[int, ...]:
        """Sizes of the corrections, for each bit of a gate."""
        return tuple((self.count * (self.k - bit) + 7) // 8 for bit in range(self.k))

    def request_bytes(self, made: Extensions) -> int:
        return self.extension_bytes(made) + sum(self.correction_bytes)

    def answer_bytes(self, made: Extensions) -> int:  # noqa: ARG002 - as the other parts
        return ot.TWEAK_BYTES + sum(self.correction_bytes)

    @property
    def opened_bytes(self) -> tuple[int, int]:
        """Online: of the map and of the gates."""
        return (self.count * self.k + 7) // 8, (self.gates * self.k + 7) // 8

    @property
    def ring_mask(self) -> np.uint64:
        return np.uint64(2**self.k - 1)

    def split(self, x: Words) -> tuple[Words, Words]:
        """The map, (gates, length), and the gates, (gates, 1)."""
        return x[: self.count].reshape(self.gates, self.length), x[self.count :].reshape(self.gates, 1)

    def expanded(self, pads: Words) -> Iterator[Words]:
        """The long messages of each bit's OTs, (gates, length); as many bits in a call as take EXPANDED_WORDS."""
        of_bits, bits = pads.reshape(self.k, self.row, 2)[:, : self.gates], max(1, EXPANDED_WORDS // self.count)
        for first in range(0, self.k, bits):
            seeds = np.ascontiguousarray(of_bits[first : first + bits])
            yield from ot.expanded_pads(seeds.reshape(-1, 2), self.length).reshape(-1, self.gates, self.length)

    def unpacked(self, message: memoryview) -> Iterator[tuple[int, Words]]:
        """Unpack the corrections bit by bit."""
        start = 0
        for bit, size in enumerate(self.correction_bytes):
            packed = np.frombuffer(message, np.uint8, size, start)
            yield bit, unpack_ring(packed, self.k - bit, self.count).reshape(self.gates, self.length)
            start += size


class GatingOffer:
    """The server's side of the preprocessing: send `message`, then `answer` the request."""

    def __init__(self, plan: Gating, ots: ServerOts) -> None:
        message, choices, t = ots.up.correlated_random(plan.ots)
        self._plan, self._pads = plan, ot.received_pads(t, ots.up.early_tweak())
        self._beta = unslice_bits(choices.reshape(plan.k, -1), plan.gates).reshape(plan.gates, 1)
        self.message: list[Buffer] = [message.data]

    def answer(self, ots: ServerOts, request: bytearray) -> tuple[list[Buffer], Arrays]:
        """(message to the client, the server's material)."""
        plan, beta = self._plan, self._beta
        extension_bytes = plan.extension_bytes(ots.made)
        extension = np.frombuffer(request, np.uint64, extension_bytes // 8).reshape(-1, 2)
        tweak, pads = ots.down.late_pads(extension, plan.ots, random_choices=False)
        alpha = np.empty((plan.gates, plan.length), np.uint64)
        ots.prg.fill_words(alpha.reshape(-1))
        alpha &= plan.ring_mask
        corrections, share = _correct(plan, pads, alpha)
        share += _unmask(plan, self._pads, beta, memoryview(request)[extension_bytes:])
        material = {"alpha": alpha.reshape(-1), "beta": beta.reshape(-1), "share": share.reshape(-1) & plan.ring_mask}
        return [tweak, *corrections], material


class GatingRequest:
    """The client's side: send `message`, then `finish` with the answer. `offered` are the pads of its offer."""

    def __init__(self, plan: Gating, ots: ClientOts, shares: Words, offered: ot.PadPair) -> None:
        x, self._gates = plan.split(shares)
        self._plan = plan
        extension, self._t = ots.down.correlated(slice_bits(self._gates.reshape(-1), plan.k).reshape(-1), plan.ots)
        corrections, self._share = _correct(plan, offered, x)
        self.message: list[Buffer] = [extension.data, *corrections]

    def finish(self, answer: bytearray) -> Arrays:
        plan = self._plan
        pads = ot.received_pads(self._t, bytes(answer[: ot.TWEAK_BYTES]))
        share = self._share + _unmask(plan, pads, self._gates, memoryview(answer)[ot.TWEAK_BYTES :])
        return {"share": share.reshape(-1) & plan.ring_mask}


def accepted_offer(plan: Gating, ots: ClientOts, offer: bytearray) -> ot.PadPair:
    message = np.frombuffer(offer, np.uint64).reshape(-1, 2)
    return ots.up.early_pads(message, plan.ots, random_choices=True)


def _correct(plan: Gating, pads: ot.PadPair, x: Words) -> tuple[list[Buffer], Words]:
    """(corrections, share) of the party whose x is multiplied by the other's gates."""
    share = np.zeros_like(x)
    corrections: list[Buffer] = []
    for bit, (first, second) in enumerate(zip(plan.expanded(pads.zeros), plan.expanded(pads.ones), strict=True)):
        correction = x + first - second
        corrections.append(pack_ring(np.ascontiguousarray(correction.reshape(-1)), plan.k - bit).data)
        share -= first << np.uint64(bit)
    return corrections, share


def _unmask(plan: Gating, pads: Words, gates: Words, corrections: memoryview) -> Words:
    """The share of the party whose gates' bits were its choices."""
    share = np.zeros((plan.gates, plan.length), np.uint64)
    for (bit, correction), pad in zip(plan.unpacked(corrections), plan.expanded(pads), strict=True):
        chosen = gates >> np.uint64(bit) & _ONE
        share += pad + chosen * correction << np.uint64(bit)
    return share


def gate_server(channel: Channel, plan: Gating, material: Arrays, shares: Words) -> Words:
    """The server's share of x g, the client's being its new mask."""
    x, gates = plan.split(shares)
    alpha, beta = (material[name].reshape(plan.gates, -1) for name in ("alpha", "beta"))
    opened = [pack_ring((own & plan.ring_mask).reshape(-1), plan.k).data for own in (x - alpha, gates - beta)]
    channel.send(*opened)
    reshared = unpack_ring(np.frombuffer(channel.receive(plan.opened_bytes[0]), np.uint8), plan.k, plan.count)
    return ((x * gates).reshape(-1) + material["share"] + reshared) & plan.ring_mask


def gate_client(channel: Channel, plan: Gating, material: Arrays, shares: Words, new_mask: Words) -> None:
    x, gates = plan.split(shares)
    map_bytes, gate_bytes = plan.opened_bytes
    message = channel.receive(map_bytes + gate_bytes)
    opened = unpack_ring(np.frombuffer(message, np.uint8, map_bytes), plan.k, plan.count)
    opened_gates = unpack_ring(np.frombuffer(message, np.uint8, gate_bytes, map_bytes), plan.k, plan.gates)
    y = (opened.reshape(x.shape) + x) * gates + opened_gates[:, None] * x
    y = y.reshape(-1) + material["share"] - new_mask
    channel.send(pack_ring(y & plan.ring_mask, plan.k).data)
