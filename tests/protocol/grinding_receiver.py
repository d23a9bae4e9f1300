"""An OT receiver that chooses the roots of its own trees and follows the protocol in everything else.

About 16 roots of a tree are tried until its four bits of t_i xor t_j are those wanted, for two OTs i and j of one
extension: 500 tries in all make any difference of two labels. Written anew from docs/symmetric-core.md, for
SoftSpoken's parameter 4: what it shares with the core is AES and the wire.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sphynx.core import _native, ot
from sphynx.core.bits import plane_words

Words = NDArray[np.uint64]
Planes = NDArray[np.uint8]

PARAMETER, LEAVES = 4, 16
TREES = ot.BASE_OTS // PARAMETER
TILE = 8  # column blocks whose trees stand together in a message


def _aes(key: bytes, plain: bytes) -> bytes:
    blocks = np.frombuffer(plain, np.uint64).reshape(-1, 2)
    out = np.empty_like(blocks)
    _native.aes_encrypt(key, blocks, out)
    return out.tobytes()


def _xor(*blocks: bytes) -> bytes:
    total = 0
    for block in blocks:
        total ^= int.from_bytes(block, "little")
    return total.to_bytes(16, "little")


class GrindingReceiver:
    """`wanted(session)` is t_i xor t_j for the OTs (i, j) of the extension that comes after `skipped` column blocks."""

    def __init__(self, base_pairs: Words, skipped: int, pair: tuple[int, int], wanted: Callable[[bytes], int]) -> None:
        self._session = os.urandom(16)
        self._column, self._extensions, self.tried = 0, 0, 0
        difference = wanted(self._session)
        masks = base_pairs.reshape(-1, 2, 2)
        self._leaves: list[list[bytes]] = []
        setup = []
        for tree in range(TREES):
            digit = difference >> (PARAMETER * tree) & (LEAVES - 1)
            sums, leaves = self._ground(tree, skipped, pair, digit)
            self._leaves.append(leaves)
            for bit, (zero, one) in enumerate(sums):
                key = masks[PARAMETER * tree + bit]
                setup += [_xor(one, key[0].tobytes()), _xor(zero, key[1].tobytes())]
        self.setup = np.frombuffer(b"".join([*setup, self._session]), np.uint64).reshape(-1, 2).copy()

    def _ground(
        self, tree: int, skipped: int, pair: tuple[int, int], digit: int
    ) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        while True:
            self.tried += 1
            sums, leaves = self._tree(tree, os.urandom(16))
            first, last = pair[0] // 128, pair[1] // 128
            rows, _ = self._streams(tree, leaves, skipped + first, last - first + 1)
            bits = np.unpackbits(rows, axis=1, bitorder="little")
            found = bits[:, pair[0] - 128 * first] ^ bits[:, pair[1] - 128 * first]
            if int(found @ (1 << np.arange(PARAMETER))) == digit:
                return sums, leaves

    def _salt(self, tree: int, changed: int = 0) -> bytes:
        low = int.from_bytes(self._session[:8], "little") ^ tree << 8 ^ changed
        return low.to_bytes(8, "little") + self._session[8:]

    def _tree(self, tree: int, root: bytes) -> tuple[list[tuple[bytes, bytes]], list[bytes]]:
        """(for each bit the sums of its two sides, the leaves)."""
        nodes, sums = [root], []
        for bit in reversed(range(PARAMETER)):
            plain = self._salt(tree, 2 * bit) + self._salt(tree, 2 * bit + 1)
            children = [_aes(node, plain) for node in nodes]
            sums.append((_xor(*(c[:16] for c in children)), _xor(*(c[16:] for c in children))))
            nodes = [half for c in children for half in (c[:16], c[16:])]
        return sums[::-1], nodes

    def _streams(self, tree: int, leaves: list[bytes], column: int, count: int) -> tuple[Planes, Planes]:
        """(the four rows, the sum of all leaves), as bytes of so many column blocks."""
        plain = b"".join(self._salt(tree)[:8] + (column + i).to_bytes(8, "big") for i in range(count))
        streams = np.stack([np.frombuffer(_aes(leaf, plain), np.uint8) for leaf in leaves])
        index = np.arange(LEAVES)
        rows = [np.bitwise_xor.reduce(streams[index >> bit & 1 == 1]) for bit in range(PARAMETER)]
        return np.stack(rows), np.bitwise_xor.reduce(streams)

    def correlated(self, choices: Words, count: int) -> tuple[Words, Words]:
        columns = (count + 127) // 128
        chosen = np.zeros(2 * columns, np.uint64)
        chosen[: plane_words(count)] = choices.reshape(-1)
        rows, sums = [], []
        for tree, leaves in enumerate(self._leaves):
            of_tree, total = self._streams(tree, leaves, self._column, columns)
            rows.append(of_tree)
            sums.append((total ^ chosen.view(np.uint8)).reshape(columns, 16))
        self._column += columns
        self._extensions += 1
        sent = np.stack(sums)
        message = np.concatenate([sent[:, at : at + TILE].reshape(-1) for at in range(0, columns, TILE)])
        bits = np.unpackbits(np.concatenate(rows), axis=1, bitorder="little")[:, :count]
        t = np.packbits(bits.T, axis=1, bitorder="little")
        return message.view(np.uint64).reshape(-1, 2), np.ascontiguousarray(t).view(np.uint64).copy()


def early_tweak(session: bytes, extensions: int) -> int:
    """Return what both parties call the early tweak of that extension, as an element of GF(2^128)."""
    return int.from_bytes(_aes(session, extensions.to_bytes(16, "little")), "little")


def times(factor: int, element: int) -> int:
    """Their product in GF(2^128)."""
    product = 0
    for bit in reversed(range(factor.bit_length())):
        product = product << 1 ^ (0x87 | 1 << 128) * (product >> 127)
        product ^= element * (factor >> bit & 1)
    return product


def before_sigma(mixed: int) -> int:
    """x with sigma(x) = mixed, sigma(hi || lo) = (hi xor lo) || hi."""
    high, low = mixed & (1 << 64) - 1, mixed >> 64
    return high << 64 | high ^ low
