"""ReLU with exact truncation by bit-sliced GMW on preprocessed randomness.

With x = x_s + x_c mod 2^w signed and x_c known to the client beforehand, the parties end with shares of
max(x, 0) >> f mod 2^k, the client's being a mask r' of its choice:

    server -> client   first_message       s_i xor a_i for the w bits of x_s; z = (x_s >> f) - alpha
    both               open / close        of each level of the carry tree: masked p, g, p of its nodes
    both               the last opening    d xor delta, c_f xor b1, wrap xor b2
    client -> server   finish              y_c - r'

To close an opening takes both parties'. They take turns: a message has the opening that the peer waits for and the
one after it, which needs no more than what has arrived. So there are `turns` messages of either party, not two for each
opening, and none that is waited for longer: (0) | 0 1 | 1 2 | 2 3 | ...

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
    results: int  # by both parties
    ring_elements: int  # z beside the leaves; the client's resharing

    @property
    def openings(self) -> tuple[int, ...]:
        return (*self.levels, self.results)

    @property
    def server_bytes(self) -> int:
        return self.leaves + sum(self.openings) + self.ring_elements

    @property
    def client_bytes(self) -> int:
        return sum(self.openings) + self.ring_elements

    @property
    def online_bytes(self) -> int:
        return self.server_bytes + self.client_bytes

    @property
    def messages(self) -> int:
        """Of both parties, each with a header, one after the other."""
        return 2 * turns(len(self.openings))


def turns(openings: int) -> int:
    """The messages that each party sends for `openings` openings."""
    return openings // 2 + 1


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
        self._results: Words = self._sent

    def _start(self, leaf_products: Words) -> None:
        self._g[: self.shape.w - 1] = leaf_products[:-1]
        # wrap = msb_s or msb_c = their xor, xor their product
        self._wrap = self._planes[-1] ^ leaf_products[-1]

    def open(self, level: int) -> Words:
        """What to send for this level, or after the last one for the result bits, (rows, words)."""
        if level == self._tree.level_count:
            return self._masked_results()
        out = np.empty((self._tree.opened_rows(level), self.shape.words), np.uint64)
        self._tree.open_level(level, self.shape.words, self._g, self._p, self._material.node_masks, out)
        self._sent = out
        return out

    def close(self, level: int, received: Words) -> None:
        """With the peer's opening, after one's own."""
        received = received.reshape(self._sent.shape)
        if level == self._tree.level_count:
            self._results = self._sent ^ received
            return
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

    def _multiplex(self, z: Words, own: Words) -> Words:
        y = np.empty(self.shape.count, np.uint64)
        _native.multiplex(
            self._results,
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

    def first_message(self) -> tuple[Words, Bytes]:
        """(w planes, packed z)."""
        self._z = (self._truncated - self._alpha) & self.shape.ring_mask
        return self._planes ^ self._leaf_masks, pack_ring(self._z, self.shape.k)

    def finish(self, reshare: Bytes) -> Words:
        """The server's share y - r', from the client's resharing."""
        y = self._multiplex(self._z, self._alpha)
        return (y + unpack_ring(reshare, self.shape.k, self.shape.count)) & self.shape.ring_mask


class ReluClient(_Role):
    """Holds x_c, known before the inference."""

    adds_public = False

    def begin(self, leaves: Words, packed_z: Bytes) -> None:
        """With the server's first message."""
        self._start((leaves & self._planes) ^ self._material.leaf_products)
        self._z = unpack_ring(packed_z, self.shape.k, self.shape.count)

    def finish(self, new_mask: Words) -> Bytes:
        """The resharing message y_c - r'; the client's share is r' = new_mask."""
        y = self._multiplex(self._z, self._truncated)
        return pack_ring((y - new_mask) & self.shape.ring_mask, self.shape.k)
