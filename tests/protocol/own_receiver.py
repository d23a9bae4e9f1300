"""An OT receiver written anew from docs/symmetric-core.md, for SoftSpoken's parameter 4, with hashlib's BLAKE2.

What it shares with the core is AES and the wire. It follows the protocol, its checks included, unless it is told to
stake a guess of the sender's offset: to put other choices into one tree, and to answer the check as it has to be
answered if the guess is right.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sphynx.core import _native, ot
from sphynx.core.bits import plane_words

Words = NDArray[np.uint64]
Planes = NDArray[np.uint8]

PARAMETER, LEAVES = 4, 16
TREES = ot.BASE_OTS // PARAMETER
TILE = 8  # column blocks whose trees stand together in a message
Tree = tuple[list[tuple[bytes, bytes]], list[bytes]]  # for each bit the sums of its two sides; the leaves


@dataclass(frozen=True)
class Stake:
    """Flip the choices of these OTs in one tree, betting that `guess` is the tree's four bits of the offset."""

    tree: int
    guess: int
    ots: tuple[int, ...]


def aes(key: bytes, plain: bytes) -> bytes:
    blocks = np.frombuffer(plain, np.uint64).reshape(-1, 2)
    out = np.empty_like(blocks)
    _native.aes_encrypt(key, blocks, out)
    return out.tobytes()


def xor(*blocks: bytes) -> bytes:
    total = 0
    for block in blocks:
        total ^= int.from_bytes(block, "little")
    return total.to_bytes(len(blocks[0]), "little")


def times(factor: int, element: int) -> int:
    """Their product in GF(2^128)."""
    product = 0
    for bit in reversed(range(factor.bit_length())):
        product = product << 1 ^ (0x87 | 1 << 128) * (product >> 127)
        product ^= element * (factor >> bit & 1)
    return product


def blake(size: int, purpose: bytes, *parts: bytes) -> bytes:
    return hashlib.blake2b(b"".join([_number(len(purpose)), purpose, *parts]), digest_size=size).digest()


def blake2sp(message: bytes) -> bytes:
    """Eight leaves, of which each hashes every eighth block of 64 bytes, and a root."""
    node = partial(hashlib.blake2s, digest_size=32, inner_size=32, fanout=8, depth=2, leaf_size=0)
    digests = []
    for leaf in range(8):
        blocks = [message[at : at + 64] for at in range(64 * leaf, len(message), 512)]
        digests.append(node(b"".join(blocks), node_offset=leaf, node_depth=0, last_node=leaf == 7).digest())
    return node(b"".join(digests), node_offset=0, node_depth=1, last_node=True).digest()


def _number(value: int) -> bytes:
    return value.to_bytes(8, "little")


class OwnReceiver:
    def __init__(self, base_pairs: Words, corrupted_sum: int | None = None) -> None:
        """A corrupted sum of a level is one of the 256 that the base OTs' keys mask, two for each bit of the offset."""
        self.session, self.stakes = os.urandom(16), list[Stake]()
        self._column = self._extensions = 0
        self._context = bytes(32)
        masks = base_pairs.reshape(-1, 2, 2)
        self._seeds: list[list[bytes]] = []
        sums_of_levels, sums_of_tags, all_tags = [], [], []
        for tree in range(TREES):
            sums, leaves = self.choose_tree(tree)
            tags, seeds = self._tags_and_seeds(tree, leaves)
            self._seeds.append(seeds)
            all_tags += tags
            sums_of_tags.append(xor(*tags))
            for bit, (zero, one) in enumerate(sums):
                key = masks[PARAMETER * tree + bit]
                sums_of_levels += [xor(one, key[0].tobytes()), xor(zero, key[1].tobytes())]
        if corrupted_sum is not None:
            sums_of_levels[corrupted_sum] = xor(sums_of_levels[corrupted_sum], b"\1" + bytes(15))
        digest = blake(32, b"sphynx OT trees", self.session, *all_tags)
        setup = b"".join([*sums_of_levels, self.session, *sums_of_tags, digest])
        self.setup = np.frombuffer(setup, np.uint64).reshape(-1, 2).copy()
        self.bind(setup)

    def bind(self, said: bytes) -> None:
        self._context = blake(32, b"sphynx OT session", self._context, said)

    def choose_tree(self, tree: int) -> Tree:
        return self.expand(tree, os.urandom(16))

    def expand(self, tree: int, root: bytes) -> Tree:
        nodes, sums = [root], []
        for bit in reversed(range(PARAMETER)):
            plain = self._salt(tree, 2 * bit) + self._salt(tree, 2 * bit + 1)
            children = [aes(node, plain) for node in nodes]
            sums.append((xor(*(c[:16] for c in children)), xor(*(c[16:] for c in children))))
            nodes = [half for c in children for half in (c[:16], c[16:])]
        return sums[::-1], nodes

    def _salt(self, tree: int, changed: int = 0) -> bytes:
        low = int.from_bytes(self.session[:8], "little") ^ tree << 8 ^ changed
        return low.to_bytes(8, "little") + self.session[8:]

    def _tags_and_seeds(self, tree: int, leaves: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        purpose = b"sphynx OT leaf"
        both = [blake(48, purpose, self.session, _number(tree), _number(x), leaf) for x, leaf in enumerate(leaves)]
        return [found[:32] for found in both], [found[32:] for found in both]

    def streams(self, tree: int, leaves: list[bytes], column: int, count: int) -> tuple[Planes, Planes]:
        """(the four rows, the sum of all leaves' streams), as bytes of so many column blocks."""
        _, seeds = self._tags_and_seeds(tree, leaves)
        return self._streams_of(tree, seeds, column, count)

    def _streams_of(self, tree: int, seeds: list[bytes], column: int, count: int) -> tuple[Planes, Planes]:
        plain = b"".join(self._salt(tree)[:8] + (column + i).to_bytes(8, "big") for i in range(count))
        streams = np.stack([np.frombuffer(aes(seed, plain), np.uint8) for seed in seeds])
        index = np.arange(LEAVES)
        rows = [np.bitwise_xor.reduce(streams[index >> bit & 1 == 1]) for bit in range(PARAMETER)]
        return np.stack(rows), np.bitwise_xor.reduce(streams)

    def correlated(self, choices: Words, count: int) -> tuple[Words, Words]:
        """(message, t) for chosen bits, and the stakes."""
        chosen = np.zeros(16 * _columns(count), np.uint8)
        chosen[: 8 * plane_words(count)] = choices.reshape(-1).view(np.uint8)
        chosen[-16:] = np.frombuffer(os.urandom(16), np.uint8)
        return self._extend(count, chosen, is_random=False)

    def correlated_random(self, count: int) -> tuple[Words, Words, Words]:
        """(message, choices, t), the choices being the sums of the first tree, of which nothing is sent."""
        _, chosen = self._streams_of(0, self._seeds[0], self._column, _columns(count))
        message, t = self._extend(count, chosen, is_random=True)
        bits = np.zeros(64 * plane_words(count), np.uint8)
        bits[:count] = np.unpackbits(chosen, bitorder="little")[:count]
        return message, np.packbits(bits, bitorder="little").view(np.uint64), t

    def _extend(self, count: int, chosen: Planes, *, is_random: bool) -> tuple[Words, Words]:
        columns, rows, sums = _columns(count), [], []
        for tree, seeds in enumerate(self._seeds):
            of_tree, total = self._streams_of(tree, seeds, self._column, columns)
            rows.append(of_tree)
            if tree or not is_random:
                sums.append((total ^ chosen ^ self._flipped(tree, columns)).reshape(columns, 16))
        sent = np.stack(sums)
        body = b"".join(sent[:, at : at + TILE].tobytes() for at in range(0, columns, TILE))
        v = np.concatenate(rows)
        message = body + self._check(count, is_random, body, chosen, v)
        self._column += columns
        self._extensions += 1
        bits = np.unpackbits(v, axis=1, bitorder="little")[:, :count]
        t = np.ascontiguousarray(np.packbits(bits.T, axis=1, bitorder="little")).view(np.uint64).copy()
        for stake in self.stakes:
            words = np.frombuffer((stake.guess << PARAMETER * stake.tree).to_bytes(16, "little"), np.uint64)
            t[list(stake.ots)] ^= words
        return np.frombuffer(message, np.uint64).reshape(-1, 2).copy(), t

    def _flipped(self, tree: int, columns: int) -> Planes:
        bits = np.zeros(128 * columns, np.uint8)
        for stake in self.stakes:
            if stake.tree == tree:
                bits[list(stake.ots)] ^= 1
        return np.packbits(bits, bitorder="little")

    def _check(self, count: int, is_random: bool, body: bytes, chosen: Planes, v: Planes) -> bytes:
        numbers = _number(self._extensions) + _number(count) + _number(is_random)
        alpha = int.from_bytes(blake(16, b"sphynx OT extension", self._context, numbers, blake2sp(body)), "little")
        hashes = [_polynomial(alpha, row) for row in v]
        for stake in self.stakes:
            error = _polynomial(alpha, self._flipped(stake.tree, len(chosen) // 16))
            for bit in range(PARAMETER):
                hashes[PARAMETER * stake.tree + bit] ^= error * (stake.guess >> bit & 1)
        listed = b"".join(value.to_bytes(16, "little") for value in hashes)
        return _polynomial(alpha, chosen).to_bytes(16, "little") + blake(32, b"sphynx OT rows", listed)


def _columns(count: int) -> int:
    return (count + 127) // 128 + 1


def _polynomial(alpha: int, row: Planes) -> int:
    """block_0 alpha + block_1 alpha^2 + ... + the last block."""
    *blocks, last = (int.from_bytes(row[at : at + 16].tobytes(), "little") for at in range(0, len(row), 16))
    total = 0
    for block in reversed(blocks):
        total = times(total ^ block, alpha)
    return total ^ last
