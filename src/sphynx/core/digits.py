"""The leaves of the carry tree: digits of one to four bits, of which the client knows its own before the inference.

So of a digit of b bits, N = 2^b, the server sends the one-hot code of its s, e_v = [s = v] for v >= 1, masked by m_v,
and the client, whose digit is c, picks from it whether the digit generates a carry (g) or would pass one (p), mod 2:

    g = e_(N-c) + ... + e_(N-1)        p = e_(N-1-c)        with e_0 = 1 + e_1 + ... + e_(N-1)

Preprocessed are shares of the masks' part of both, by one OT for each bit of c. Each c has a place of its own in the
pads, a bit for g and one for p, and its pads G_c and P_c are the sums of the bits at that place in the b pads that the
bits of c choose. So the client knows the pads of its own c; in the sum of any other there is a bit that it does not
know and that serves nothing else (Naor and Pinkas).

    m_(N-c) = G_c + G_(c-1): then G_0 and G_c are shares of m_(N-c) + ... + m_(N-1)
    P_c + m_(N-1-c): the server sends, for c >= 1, by how much it differs from that of 0, which is its share

A digit does not cross bit f, since the carry into f is wanted. Of a digit of one bit p = s + c, without OT. The top
bit, beyond the tree, is such a digit.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sphynx.core import _native
from sphynx.core.bits import plane_words, slice_bits

Words = NDArray[np.uint64]


class Digits:
    """Public: how the bits of w-bit shares are cut, bit `top` being the top one. Planes are (rows, words), in the order
    of the digits, the top bit last."""

    def __init__(self, w: int, f: int, top: int, arity: int) -> None:
        self._native = _native.Digits(w, f, top, arity)
        self.tree = self._native.tree
        self.widths = tuple(self._native.widths)
        self.bit_rows = self._native.bit_rows  # of what the client chooses by: an OT each
        self.code_rows = self._native.code_rows  # of what the server sends
        self.correction_rows = sum((1 << width) - 1 for width in self.widths if width > 1)

    @property
    def opened_rows(self) -> tuple[int, ...]:
        """Planes that each party sends for each level of the tree."""
        return tuple(self.tree.opened_rows(level) for level in range(self.tree.level_count))

    def bits(self, values: Words) -> Words:
        """A party's own bits, the lowest first, the top bit last."""
        bits = np.empty((self.bit_rows, plane_words(values.size)), np.uint64)
        self._native.bits(values, bits)
        return bits

    def masks(self, zeros: Words, ones: Words) -> tuple[Words, Words, Words]:
        """The server's (masks of its codes, share of the products, corrections), from words (bit_rows, 64 words) of
        both pads of every OT."""
        masks, of_g, of_p, corrections = [], [], [], [np.empty((0, zeros.shape[1] // 64), np.uint64)]
        for width, rows in self._cut():
            pads = np.zeros(zeros.shape[1], np.uint64)
            for bit, (zero, one) in enumerate(zip(zeros[rows], ones[rows], strict=True)):
                chosen = _places(bit, width)
                pads ^= (zero & ~chosen) ^ (one & chosen)
            g, p = np.split(slice_bits(pads, 2 << width), 2)
            masks.append((g[1:] ^ g[:-1])[::-1])
            of_g.append(g[:1])
            if width > 1:
                p ^= g ^ np.roll(g, -1, axis=0)
                of_p.append(p[:1])
                corrections.append(p[1:] ^ p[:1])
        return np.concatenate(masks), np.concatenate(of_g + of_p), np.concatenate(corrections)

    def products(self, pads: Words, bits: Words, corrections: Words) -> Words:
        """The client's share of the products, from a word (bit_rows, 64 words) of its pads and its bits."""
        of_g, of_p, start = [], [], 0
        for width, rows in self._cut():
            own = bits[rows]
            g, p = np.split(slice_bits(np.bitwise_xor.reduce(pads[rows]), 2 << width), 2)
            of_g.append(_pick(g, own))
            if width > 1:
                end = start + 2**width - 1
                p[1:] ^= corrections[start:end]
                of_p.append(_pick(p, own))
                start = end
        return np.concatenate(of_g + of_p)

    def _cut(self) -> list[tuple[int, slice]]:
        """Width and rows of bits of every digit, and of the top one."""
        widths = (*self.widths, 1)
        ends = np.cumsum(widths).tolist()
        return [(width, slice(end - width, end)) for width, end in zip(widths, ends, strict=True)]


def _places(bit: int, width: int) -> np.uint64:
    """The places in a pad of all the client's digits that have this bit: those for g are below those for p."""
    having = sum(1 << c for c in range(2**width) if c >> bit & 1)
    return np.uint64(having | having << 2**width)


def _pick(table: Words, bits: Words) -> Words:
    """The row of the table whose number is in the bits; no address depends on them."""
    for bit in bits[::-1]:
        low, high = np.split(table, 2)
        table = low ^ ((low ^ high) & bit)
    return table


@lru_cache
def digits_of(w: int, f: int, top: int, arity: int) -> Digits:
    return Digits(w, f, top, arity)
