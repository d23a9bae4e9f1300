"""Shares of secret factors times committed numbers (Gilboa, CRYPTO 1999), by the OTs that commit to their bits.

A number's bit b_j stands for b_j 2^j, so its product with a factor modulo 2^K is that of b_j with the factor modulo
2^(K-j), times 2^j: the higher a bit, the shorter its message. Of all products only the sum is wanted. The pads are
hashes of the OTs' labels with late tweaks of their own (core/crypto/hash.h): the labels serve garbled circuits as well.
A pad has 128 bits, of which a product takes at most 64: one tweak serves two functionals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sphynx.core import ot
from sphynx.core.bits import slice_bits
from sphynx.protocol.ots import ServerOts
from sphynx.protocol.wires import Chunk, Wires, Words

_HALVES = 2


def tweaks_bytes(functionals: int) -> int:
    return ot.TWEAK_BYTES * -(-functionals // _HALVES)


def sender_pads(ots: ServerOts, labels: ot.FixedLabels, functionals: int) -> tuple[bytes, Iterator[ot.PadPair]]:
    """(late tweaks for the client, the pads of one functional after the other)."""
    tweaks = [labels.late_tweak() for _ in range(tweaks_bytes(functionals) // ot.TWEAK_BYTES)]

    def pads() -> Iterator[ot.PadPair]:
        for number, tweak in enumerate(tweaks):
            both = ots.down.pads(labels.zeros.copy(), tweak)
            yield both
            if _HALVES * number + 1 < functionals:
                yield ot.PadPair(_other_half(both.zeros), _other_half(both.ones))

    return b"".join(tweaks), pads()


def receiver_pads(labels: Words, tweaks: memoryview, functionals: int) -> Iterator[Words]:
    for number in range(len(tweaks) // ot.TWEAK_BYTES):
        tweak = bytes(tweaks[ot.TWEAK_BYTES * number : ot.TWEAK_BYTES * (number + 1)])
        pads = ot.received_pads(labels.copy(), tweak)
        yield pads
        if _HALVES * number + 1 < functionals:
            yield _other_half(pads)


def _other_half(pads: Words) -> Words:
    """The pads with their second word in front, where products take it from."""
    return np.ascontiguousarray(pads[:, ::-1])


def message_bytes(wires: Wires, ring_bits: int) -> int:
    return sum(
        (chunk.count * (ring_bits - bit) + 7) // 8 for chunk in wires.chunks() for _, bit, _ in _bits(wires, ring_bits)
    )


def send(pads: ot.PadPair, wires: Wires, factors: Sequence[Words], ring_bits: int) -> tuple[bytes, int]:
    """(message, share of the sum of all products), `factors` being one array for each number of an instance."""
    message, total = bytearray(), 0
    for chunk in wires.chunks():
        zeros, ones = wires.blocks(pads.zeros, chunk), wires.blocks(pads.ones, chunk)
        for number, bit, wire in _bits(wires, ring_bits):
            both = ot.PadPair(zeros[wire], ones[wire])
            part, shares = ot.send_products(both, factors[number][chunk.own], ring_bits - bit)
            message += part.data
            total += int(shares.sum(dtype=np.uint64)) << bit
    return bytes(message), total % (1 << ring_bits)


def receive(pads: Words, wires: Wires, numbers: Sequence[Words], message: memoryview, ring_bits: int) -> int:
    """The receiver's share of the sum."""
    total = at = 0
    for chunk in wires.chunks():
        blocks, planes = wires.blocks(pads, chunk), _planes(wires, numbers, chunk)
        for _, bit, wire in _bits(wires, ring_bits):
            width = ring_bits - bit
            part = np.frombuffer(message[at : at + (chunk.count * width + 7) // 8], np.uint8)
            at += part.size
            shares = ot.receive_products(blocks[wire], planes[wire], part, width)
            total += int(shares.sum(dtype=np.uint64)) << bit
    return total % (1 << ring_bits)


def _bits(wires: Wires, ring_bits: int) -> Iterator[tuple[int, int, int]]:
    """For every wire that counts in the ring: which number it belongs to, which of its bits it is, and the wire."""
    first = 0
    for number, width in enumerate(wires.widths):
        for bit in range(min(width, ring_bits)):
            yield number, bit, first + bit
        first += width


def _planes(wires: Wires, numbers: Sequence[Words], chunk: Chunk) -> Words:
    return np.concatenate([slice_bits(n[chunk.own], width) for n, width in zip(numbers, wires.widths, strict=True)])
