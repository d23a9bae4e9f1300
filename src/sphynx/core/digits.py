"""The leaves of the carry tree: digits of two bits, of which the client knows its own before the inference.

So g (the digit generates a carry) and p (one would pass) are sums of the server's s1, s0 and s1 s0, each times what the
client knows, mod 2:

    g = s1 c1 + s1 s0 c0 + s0 c1 c0        p = s1 s0 + s1 c0 + s0 c1 + c1 c0

The server sends s1, s0 and s1 s0, masked by m1, m0 and m10. Preprocessed are shares of the masks' part of both sums,
by three OTs with the choices c1, c0 and c1 c0; an OT gives the product of its choice with whatever its pads differ by:

    c1       m1 c1 for g and m0 c1 for p: this is what m1 and m0 are
    c0       m10 c0 for g, likewise; m1 c0 for p, corrected
    c1 c0    m0 c1 c0 for g, corrected

A digit does not cross bit f, since the carry into f is wanted: below and above it one bit may be left over, with
g = s c and p = s + c by one OT. The top bit, which is beyond the tree, is done likewise.
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
    pairs, then single bits."""

    def __init__(self, w: int, f: int, top: int) -> None:
        self._native = _native.Digits(w, f, top)
        self.tree = self._native.tree
        self.term_rows = self._native.term_rows  # of what the server sends and the client chooses by: an OT each
        self._pairs = self._native.pair_count
        self.correction_rows = 2 * self._pairs

    @property
    def opened_rows(self) -> tuple[int, ...]:
        """Planes that each party sends for each level of the tree."""
        return tuple(self.tree.opened_rows(level) for level in range(self.tree.level_count))

    def terms(self, values: Words) -> Words:
        """b1, b0 and b1 b0 of a party's own pairs of bits, then its single bits."""
        terms = np.empty((self.term_rows, plane_words(values.size)), np.uint64)
        self._native.terms(values, terms)
        return terms

    def masks(self, zeros: Words, ones: Words) -> tuple[Words, Words, Words]:
        """The server's (masks of its terms, share of the products, corrections), from two bits (2, rows, words) of
        both pads of every OT."""
        of_g, of_p = zeros ^ ones
        (m1, m10, of_both, alone), (m0, of_low, _, _) = self._parts(of_g), self._parts(of_p)
        masks = np.concatenate([m1, m0, m10, alone])
        return masks, self._summed(zeros), np.concatenate([of_low ^ m1, of_both ^ m0])

    def products(self, pads: Words, terms: Words, corrections: Words) -> Words:
        """The client's share of the products, from its terms and its pads."""
        _, low, both, _ = self._parts(terms)
        m1, m0 = np.split(corrections, 2)
        pairs = self._pairs
        products = self._summed(pads)
        products[:pairs] ^= both & m0
        products[pairs : 2 * pairs] ^= low & m1
        return products

    def _summed(self, pads: Words) -> Words:
        """Shares of the masks' parts of g and p of the pairs, then of g of the single bits."""
        (high, low, both, alone), (high_p, low_p, _, _) = self._parts(pads[0]), self._parts(pads[1])
        return np.concatenate([high ^ low ^ both, high_p ^ low_p, alone])

    def _parts(self, rows: Words) -> tuple[Words, Words, Words, Words]:
        pairs = self._pairs
        return rows[:pairs], rows[pairs : 2 * pairs], rows[2 * pairs : 3 * pairs], rows[3 * pairs :]


@lru_cache
def digits_of(w: int, f: int, top: int) -> Digits:
    return Digits(w, f, top)
