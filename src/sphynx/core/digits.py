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
from sphynx.core.bits import plane_words

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
        self.correction_rows = self._native.correction_rows

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
        """The server's (masks of its codes, share of the products, corrections), from both pads of every OT: blocks, of
        whose low words it takes the bits, in rows of whole planes."""
        masks, products, corrections = (
            self._planes(rows, zeros) for rows in (self.code_rows, self._native.product_rows, self.correction_rows)
        )
        self._native.masks(zeros, ones, masks, products, corrections)
        return masks, products, corrections

    def products(self, pads: Words, bits: Words, corrections: Words) -> Words:
        """The client's share of the products, from its pads and its bits."""
        products = self._planes(self._native.product_rows, pads)
        self._native.products(pads, bits, corrections, products)
        return products

    def _planes(self, rows: int, pads: Words) -> Words:
        return np.empty((rows, len(pads) // (64 * self.bit_rows)), np.uint64)


@lru_cache
def digits_of(w: int, f: int, top: int, arity: int) -> Digits:
    return Digits(w, f, top, arity)
