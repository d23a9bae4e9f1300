"""ReLU with exact truncation by bit-sliced GMW on preprocessed randomness.

With x = x_s + x_c mod 2^w signed and x_c known to the client beforehand, the parties end with shares of
max(x, 0) >> f mod 2^k, the client's being a mask r' of its choice:

    server -> client   head                masked codes of the digits of x_s (digits.py); z = (x_s >> f) - alpha
    both               openings            of each level of the carry tree: masked p, g, p, g, p of its nodes
    both               the last opening    d xor delta, c_f xor b1, wrap xor b2
    client -> server   tail                y_c - r'

To close an opening takes both parties'. They take turns: a message has the opening that the peer waits for and the
one after it, which needs no more than what has arrived. So there are `turns` messages of either party, not two for each
opening, and none that is waited for longer: (0) | 0 1 | 1 2 | 2 3 | ...

The parties are compiled (core/gmw/party.h): a call for each message. A party holds one layer's batch; each material is
used for one inference and never again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from sphynx.core import _native
from sphynx.core.bits import plane_words
from sphynx.core.conversion import Conversion
from sphynx.core.digits import Digits, digits_of

Words = NDArray[np.uint64]

_WORD_BYTES = 8
RELU_ARITY, TRUNCATION_ARITY = 3, 2  # how many a node of their carry trees joins, at most
THREE_CORRECTIONS = (3, 2)  # planes that either party sends offline for a node of three: at first, then again


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
        return digits_of(self.w, self.f, self.w - 1, RELU_ARITY)

    @property
    def conversion(self) -> Conversion:
        """Makes delta, b1, b2, delta b1 and delta b2 additive: the carry's, which b1 masks, where bits are cut off, and
        the wrap's, which is multiplied by 2^(w-f)."""
        ring, wrap = self.k - 1, max(0, self.k - 1 - self.w + self.f)
        carry = ring if self.f else 0
        return Conversion((ring, carry, wrap, carry, wrap), self.words)

    @property
    def gadget(self) -> _native.GmwGadget:
        """Makes the parties of a layer."""
        return planned_gadget(True, self.w, self.k, self.f, self.count)


@lru_cache(maxsize=1024)
def planned_gadget(is_relu: bool, w: int, k: int, f: int, count: int) -> _native.GmwGadget:
    """A ReLU, or a truncation of 0 <= x < 2^(w-1); made once for each shape of layer that a process meets."""
    return _native.GmwGadget(is_relu, w, k, f, count)


def truncation_conversion(w: int, k: int, f: int, words: int) -> Conversion:
    """Make b1 and b2 of a truncation additive. Each takes an OT, whose random choices are the client's bits."""
    return Conversion((k - 1, max(1, k - 1 - w + f)), words)


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
        """Count the messages of both parties, each with a header, one after the other."""
        return 2 * turns(len(self.openings))


def turns(openings: int) -> int:
    """The messages that each party sends for `openings` openings."""
    return openings // 2 + 1


@lru_cache
def online_messages(shape: ReluShape) -> OnlineMessages:
    plane_bytes = _WORD_BYTES * shape.words
    return OnlineMessages(
        leaves=shape.digits.code_rows * plane_bytes,
        levels=tuple(rows * plane_bytes for rows in shape.digits.opened_rows),
        results=3 * plane_bytes,
        ring_elements=(shape.count * shape.k + 7) // 8,
    )


@dataclass(frozen=True, repr=False)
class Material:
    """One party's correlated randomness for a batch, used once. Planes are XOR-shared.

    leaf_products  what the masks of the codes add to the leaves (digits.py)
    pair_masks     (5, pairs, words)  a, b, c, ab, ac of every node that joins two
    three_masks    (13, threes, words)  a to e and their products, of every node that joins three
    bits           (3, words)         masks of the results: delta, b1, b2; b1 is 0 where f is, as the carry is
    arithmetic     (6, count)         additive mod 2^k: delta, b1, b2, delta b1, delta b2 and
                                      delta (alpha + (x_c >> f)); b2 and delta b2 mod 2^(k-w+f), since they are
                                      multiplied by 2^(w-f)
    """

    leaf_products: Words
    pair_masks: Words
    three_masks: Words
    bits: Words
    arithmetic: Words
