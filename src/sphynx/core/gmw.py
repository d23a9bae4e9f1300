"""ReLU with exact truncation by bit-sliced GMW on preprocessed randomness.

With x = x_s + x_c mod 2^w signed and x_c known to the client beforehand, the parties end with shares of
max(x, 0) >> f mod 2^k, the client's being a mask r' of its choice:

    server -> client   first_message       masked terms of the w bits of x_s (digits.py); z = (x_s >> f) - alpha
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
from sphynx.core.bits import pack_ring, plane_words, unpack_ring
from sphynx.core.carries import Carries, CarryMaterial
from sphynx.core.digits import Digits, digits_of

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

    @property
    def digits(self) -> Digits:
        return digits_of(self.w, self.f)


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
    plane_bytes = _WORD_BYTES * shape.words
    return OnlineMessages(
        leaves=shape.digits.term_rows * plane_bytes,
        levels=tuple(rows * plane_bytes for rows in shape.digits.opened_rows),
        results=3 * plane_bytes,
        ring_elements=(shape.count * shape.k + 7) // 8,
    )


@dataclass(frozen=True, repr=False)
class Material(CarryMaterial):
    """One party's correlated randomness for a batch; `bits` (3, words) are delta, b1, b2.

    arithmetic     (6, count)         additive mod 2^k: delta, b1, b2, delta b1, delta b2 and
                                      delta (alpha + (x_c >> f))
    """

    arithmetic: Words


class _Role(Carries):
    """What both roles do alike: results and the multiplexer."""

    def __init__(self, shape: ReluShape, material: Material, x: Words, *, adds_public: bool) -> None:
        super().__init__(shape.digits, material, x, adds_public=adds_public)
        self.shape = shape
        self._arithmetic = material.arithmetic
        self._truncated = (x & np.uint64(2**shape.w - 1)) >> np.uint64(shape.f)

    def _results(self) -> Words:
        positive = self._top ^ self._into_top
        if self._adds_public:
            positive = ~positive
        carry = self._into_f if self.shape.f else np.zeros_like(positive)
        return np.stack([positive, carry, self._wrap])

    def _multiplex(self, z: Words, own: Words) -> Words:
        y = np.empty(self.shape.count, np.uint64)
        _native.multiplex(
            self._opened,
            z,
            self._arithmetic,
            own,
            self.shape.k,
            self.shape.w - self.shape.f,
            self._adds_public,
            y,
        )
        return y


class ReluServer(_Role):
    """Holds x_s, the masks of its leaves and alpha (count)."""

    def __init__(self, shape: ReluShape, material: Material, leaf_masks: Words, alpha: Words, x: Words) -> None:
        super().__init__(shape, material, x, adds_public=True)
        self._leaf_masks = leaf_masks
        self._alpha = alpha

    def first_message(self) -> tuple[Words, Bytes]:
        """(masked terms of the leaves, packed z)."""
        self.begin()
        self._z = (self._truncated - self._alpha) & self.shape.ring_mask
        return self.terms ^ self._leaf_masks, pack_ring(self._z, self.shape.k)

    def finish(self, reshare: Bytes) -> Words:
        """The server's share y - r', from the client's resharing."""
        y = self._multiplex(self._z, self._alpha)
        return (y + unpack_ring(reshare, self.shape.k, self.shape.count)) & self.shape.ring_mask


class ReluClient(_Role):
    """Holds x_c, known before the inference."""

    def __init__(self, shape: ReluShape, material: Material, x: Words) -> None:
        super().__init__(shape, material, x, adds_public=False)

    def hear(self, leaves: Words, packed_z: Bytes) -> None:
        """The server's first message."""
        self.begin(leaves)
        self._z = unpack_ring(packed_z, self.shape.k, self.shape.count)

    def finish(self, new_mask: Words) -> Bytes:
        """The resharing message y_c - r'; the client's share is r' = new_mask."""
        y = self._multiplex(self._z, self._truncated)
        return pack_ring((y - new_mask) & self.shape.ring_mask, self.shape.k)
