"""An OT receiver that chooses the roots of its own trees and follows the protocol in everything else.

About 16 roots of a tree are tried until its four bits of t_i xor t_j are those wanted, for two OTs i and j of one
extension: 500 tries in all make any difference of two labels. No check of consistency can notice.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from tests.protocol.own_receiver import LEAVES, PARAMETER, OwnReceiver, Tree, Words, aes


class GrindingReceiver(OwnReceiver):
    """`wanted(session)` is t_i xor t_j for the OTs (i, j) of the extension that comes after `skipped` column blocks."""

    def __init__(self, base_pairs: Words, skipped: int, pair: tuple[int, int], wanted: Callable[[bytes], int]) -> None:
        self._skipped, self._pair, self._wanted, self.tried = skipped, pair, wanted, 0
        super().__init__(base_pairs)

    def choose_tree(self, tree: int) -> Tree:
        digit = self._wanted(self.session) >> (PARAMETER * tree) & (LEAVES - 1)
        first, last = self._pair[0] // 128, self._pair[1] // 128
        while True:
            self.tried += 1
            sums, leaves = self.expand(tree, os.urandom(16))
            rows, _ = self.streams(tree, leaves, self._skipped + first, last - first + 1)
            bits = np.unpackbits(rows, axis=1, bitorder="little")
            found = bits[:, self._pair[0] - 128 * first] ^ bits[:, self._pair[1] - 128 * first]
            if int(found @ (1 << np.arange(PARAMETER))) == digit:
                return sums, leaves


def early_tweak(session: bytes, extensions: int) -> int:
    """Return what both parties call the early tweak of that extension, as an element of GF(2^128)."""
    return int.from_bytes(aes(session, extensions.to_bytes(16, "little")), "little")


def before_sigma(mixed: int) -> int:
    """x with sigma(x) = mixed, sigma(hi || lo) = (hi xor lo) || hi."""
    high, low = mixed & (1 << 64) - 1, mixed >> 64
    return high << 64 | high ^ low
