"""One party's part in the carry tree: its shares of the carries of x_s + x_c, opened level by level by both parties.

Roles of a protocol (a ReLU, a truncation) are Carries that say which bits they want in the end: these are opened last,
masked. The client begins with what the server sent of its leaves (digits.py), the server with nothing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sphynx.core.bits import slice_bits
from sphynx.core.digits import Digits

Words = NDArray[np.uint64]


@dataclass(frozen=True, repr=False)
class CarryMaterial:
    """One party's XOR-shared planes for a batch, used once.

    leaf_products  of the masks of the leaves with the client's bits (digits.py)
    node_masks     (5, inner, words): a, b, c, ab, ac of every inner node
    bits           masks of the results
    """

    leaf_products: Words
    node_masks: Words
    bits: Words


class Carries(ABC):
    def __init__(self, digits: Digits, material: CarryMaterial, x: Words, *, adds_public: bool) -> None:
        """`x`: the bits of this party's share that are added, in whole; exactly one party adds what is public."""
        self._digits, self._tree, self._material = digits, digits.tree, material
        self._adds_public = adds_public
        self.terms = digits.terms(slice_bits(x, digits.w))
        self._words = self.terms.shape[1]

    def begin(self, received: Words | None = None) -> None:
        g, p = self._digits.leaves(self.terms, self._material.leaf_products, received)
        self._g, self._p = np.zeros((2, self._tree.node_count, self._words), np.uint64)
        self._g[: self._digits.count] = g[:-1]
        self._p[: self._digits.count] = p[:-1]
        self._top, self._wrap = p[-1], p[-1] ^ g[-1]  # msb_s or msb_c is their xor, xor their product

    @property
    def _into_top(self) -> Words:
        """The carry into the top bit."""
        carry: Words = self._g[self._tree.sign_node]
        return carry

    @property
    def _into_f(self) -> Words:
        """The carry into bit f > 0."""
        carry: Words = self._g[self._tree.truncation_node]
        return carry

    @abstractmethod
    def _results(self) -> Words:
        """Shares of the bits that are opened last, (rows, words)."""

    def open(self, level: int) -> Words:
        """What to send for this level, or after the last one for the results, (rows, words)."""
        if level == self._tree.level_count:
            self._sent = self._results() ^ self._material.bits
        else:
            self._sent = np.empty((self._tree.opened_rows(level), self._words), np.uint64)
            self._tree.open_level(level, self._words, self._g, self._p, self._material.node_masks, self._sent)
        return self._sent

    def close(self, level: int, received: Words) -> None:
        """With the peer's opening, after one's own."""
        received = received.reshape(self._sent.shape)
        if level == self._tree.level_count:
            self._opened = self._sent ^ received
            return
        masks, public = self._material.node_masks, self._adds_public
        self._tree.close_level(level, self._words, public, self._sent, received, masks, self._g, self._p)
