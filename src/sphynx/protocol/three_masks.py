"""Masks of the tree's nodes that join three, and shares of their products, from random OTs and corrections.

A node has five masks, a to e, and needs ab, ac, ad, ae, cd, ce, acd and ace (core/gmw/carry_tree.h), all XOR-shared.
Either party chooses by its shares of a and of c, which are random, in one OT each. As the sender it has eight bits, by
which the two pads of an OT differ:

    chosen by the peer's a    b, d, e: that is what its shares of them are; and three to be corrected, to c
                              and later to its shares of cd and of ce
    chosen by the peer's c    two to be corrected, to d and to e

An OT yields shares of the peer's choice times the sender's bit; x y = (x_s + x_c)(y_s + y_c) then takes two of them.
acd is a times cd, by a correction to a share of cd, which a party knows with the peer's first corrections.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sphynx.core.gmw import THREE_CORRECTIONS

Words = NDArray[np.uint64]

A_BITS, C_BITS = 6, 2  # that serve of a pad chosen by a, and of one chosen by c
FIRST_ROWS, SECOND_ROWS = THREE_CORRECTIONS
_B, _D, _E, _C, _CD, _CE, _D2, _E2 = range(A_BITS + C_BITS)


class ThreeMasks:
    """One party's. Planes are (bits, nodes, words): of its pads as the sender, of what both pads of an OT differ by,
    and of its pads as the receiver, whose choices were a and c."""

    def __init__(self, a: Words, c: Words, sent: Words, offsets: Words, received: Words) -> None:
        self._a, self._c, self._offsets = a, c, offsets
        self._shares = sent ^ received  # but for the peer's corrections

    @property
    def first_corrections(self) -> Words:
        """To c, and to d and e."""
        offsets = self._offsets
        return np.stack([offsets[_C] ^ self._c, offsets[_D2] ^ offsets[_D], offsets[_E2] ^ offsets[_E]])

    def hear_first(self, corrections: Words) -> None:
        to_c, to_d, to_e = corrections
        a, c, offsets, shares = self._a, self._c, self._offsets, self._shares
        self._ac = (a & c) ^ shares[_C] ^ (a & to_c)
        self._cd = (c & offsets[_D]) ^ shares[_D2] ^ (c & to_d)
        self._ce = (c & offsets[_E]) ^ shares[_E2] ^ (c & to_e)

    @property
    def second_corrections(self) -> Words:
        """To cd and to ce: after the peer's first ones."""
        return np.stack([self._offsets[_CD] ^ self._cd, self._offsets[_CE] ^ self._ce])

    def masks(self, second_corrections: Words) -> Words:
        """(13, nodes, words): a, b, c, d, e, ab, ac, ad, ae, cd, ce, acd, ace."""
        to_cd, to_ce = second_corrections
        a, offsets, shares = self._a, self._offsets, self._shares
        b, d, e = offsets[_B], offsets[_D], offsets[_E]
        ab, ad, ae = ((a & offsets[bit]) ^ shares[bit] for bit in (_B, _D, _E))
        acd = (a & self._cd) ^ shares[_CD] ^ (a & to_cd)
        ace = (a & self._ce) ^ shares[_CE] ^ (a & to_ce)
        return np.stack([a, b, self._c, d, e, ab, self._ac, ad, ae, self._cd, self._ce, acd, ace])
