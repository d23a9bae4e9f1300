"""ReLU with exact truncation by bit-sliced GMW on preprocessed randomness.

With x = x_s + x_c mod 2^w signed and x_c known to the client beforehand, the parties end with shares of
max(x, 0) >> f mod 2^k, the client's being a mask r' of its choice. One-way messages, 3 + levels in all:

    1       server -> client   leaf_message      s_i xor a_i for the w bits of x_s
    levels  both, at once      open / close      masked p, g, p of each node of the carry tree
    last    both, at once      final_message     d xor delta, c_f xor b1, wrap xor b2
                                                 and, server only, z = (x_s >> f) - alpha
    reshare client -> server   finish            y_c - r'

The roles below hold one layer's batch; each material is used for one inference and never again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sphynx.core import _native
from sphynx.core.bits import pack_ring, plane_words, slice_bits, unpack_ring

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint64]

_WORD_BYTES = 8


@dataclass(frozen=True)
class ReluShape:
    """Public: input width w, ring width k, truncation f, and how many ReLUs."""

    w: int
    k: int
    f: int
    count: int

    def __post_init__(self) -> None:
        if not (2 <= self.w <= self.k <= 64 and 0 <= self.f <= self.w - 2 and self.count > 0):
            raise ValueError(f"a GMW ReLU needs 2 <= w <= k <= 64, f <= w - 2 and a count: {self}")

    @property
    def words(self) -> int:
        return plane_words(self.count)

    @property
    def ring_mask(self) -> np.uint64:
        return np.uint64(2**self.k - 1)

    def tree(self) -> _native.CarryTree:
        return _native.CarryTree(self.w, self.f)


@dataclass(frozen=True)
class OnlineMessages:
    """Payload bytes of a layer's messages. Planes are whole words, 64 ReLUs each; ring elements are packed bits."""

    leaves: int  # server -> client
    levels: tuple[int, ...]  # each by both parties
    results: int  # by both parties; the server adds `ring_elements` to the same message
    ring_elements: int  # z inside the server's message of results; the client's resharing, a message of its own

    @property
    def server_bytes(self) -> int:
        return self.leaves + sum(self.levels) + self.results + self.ring_elements

    @property
    def client_bytes(self) -> int:
        return sum(self.levels) + self.results + self.ring_elements

    @property
    def online_bytes(self) -> int:
        return self.server_bytes + self.client_bytes

    @property
    def frames(self) -> int:
        """Messages of both parties, each with a header; those sent at once count twice here."""
        return 4 + 2 * len(self.levels)


@lru_cache
def online_messages(shape: ReluShape) -> OnlineMessages:
    tree, plane_bytes = shape.tree(), _WORD_BYTES * shape.words
    return OnlineMessages(
        leaves=shape.w * plane_bytes,
        levels=tuple(tree.opened_rows(level) * plane_bytes for level in range(tree.level_count)),
        results=3 * plane_bytes,
        ring_elements=(shape.count * shape.k + 7) // 8,
    )


@dataclass(frozen=True, repr=False)
class Material:
    """One party's correlated randomness for a batch. XOR-shared planes unless stated.

    leaf_products  (w, words)         a_i c_i, a_i being the server's leaf masks and c_i the bits of x_c
    node_masks     (5, inner, words)  a, b, c, ab, ac of every inner node
    bits           (3, words)         delta, b1, b2
    arithmetic     (6, count)         additive mod 2^k: delta, b1, b2, delta b1, delta b2 and
                                      delta (alpha + (x_c >> f))
    """

    leaf_products: Words
    node_masks: Words
    bits: Words
    arithmetic: Words


class _Role:
    """What both roles do alike: the carry tree and the masks of the result bits."""

    adds_public: bool

    def __init__(self, shape: ReluShape, material: Material, x: Words) -> None:
        self.shape = shape
        self._material = material
        self._tree = shape.tree()
        self._planes = slice_bits(x, shape.w)
        self._truncated = (x & np.uint64(2**shape.w - 1)) >> np.uint64(shape.f)
        self._g = np.zeros((self._tree.node_count, shape.words), np.uint64)
        self._p = np.zeros_like(self._g)
        self._p[: shape.w - 1] = self._planes[:-1]
        self._sent: Words = np.empty(0, np.uint64)

    @property
    def level_count(self) -> int:
        return self._tree.level_count

    def _start(self, leaf_products: Words) -> None:
        self._g[: self.shape.w - 1] = leaf_products[:-1]
        # wrap = msb_s or msb_c = their xor, xor their product
        self._wrap = self._planes[-1] ^ leaf_products[-1]

    def open(self, level: int) -> Words:
        """What to send for this level, (rows, words)."""
        out = np.empty((self._tree.opened_rows(level), self.shape.words), np.uint64)
        self._tree.open_level(level, self.shape.words, self._g, self._p, self._material.node_masks, out)
        self._sent = out
        return out

    def close(self, level: int, received: Words) -> None:
        self._tree.close_level(
            level,
            self.shape.words,
            self.adds_public,
            self._sent,
            received,
            self._material.node_masks,
            self._g,
            self._p,
        )

    def _masked_results(self) -> Words:
        positive = self._planes[-1] ^ self._g[self._tree.sign_node]
        if self.adds_public:
            positive = ~positive
        carry = self._g[self._tree.truncation_node] if self.shape.f else np.zeros_like(positive)
        self._sent = np.stack([positive, carry, self._wrap]) ^ self._material.bits
        return self._sent

    def _multiplex(self, received: Words, z: Words, own: Words) -> Words:
        y = np.empty(self.shape.count, np.uint64)
        _native.multiplex(
            self._sent ^ received,
            z,
            self._material.arithmetic,
            own,
            self.shape.k,
            self.shape.w - self.shape.f,
            self.adds_public,
            y,
        )
        return y


class ReluServer(_Role):
    """Holds x_s, the leaf masks a (w, words) and alpha (count)."""

    adds_public = True

    def __init__(self, shape: ReluShape, material: Material, leaf_masks: Words, alpha: Words, x: Words) -> None:
        super().__init__(shape, material, x)
        self._leaf_masks = leaf_masks
        self._alpha = alpha
        self._start(material.leaf_products)

    def leaf_message(self) -> Words:
        return self._planes ^ self._leaf_masks

    def final_message(self) -> tuple[Words, Bytes]:
        """(three planes, packed z)."""
        self._z = (self._truncated - self._alpha) & self.shape.ring_mask
        return self._masked_results(), pack_ring(self._z, self.shape.k)

    def finish(self, received: Words, reshare: Bytes) -> Words:
        """The server's share y - r', from the client's planes and its resharing message."""
        y = self._multiplex(received, self._z, self._alpha)
        return (y + unpack_ring(reshare, self.shape.k, self.shape.count)) & self.shape.ring_mask


class ReluClient(_Role):
    """Holds x_c, known before the inference."""

    adds_public = False

    def receive_leaves(self, message: Words) -> None:
        self._start((message & self._planes) ^ self._material.leaf_products)

    def final_message(self) -> Words:
        return self._masked_results()

    def finish(self, received: Words, packed_z: Bytes, new_mask: Words) -> Bytes:
        """The resharing message y_c - r'; the client's share is r' = new_mask."""
        z = unpack_ring(packed_z, self.shape.k, self.shape.count)
        y = self._multiplex(received, z, self._truncated)
        return pack_ring((y - new_mask) & self.shape.ring_mask, self.shape.k)
