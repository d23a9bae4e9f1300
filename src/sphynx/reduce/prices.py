"""Prices of nonlinearities beside a ReLU, by the protocol for ReLUs: bytes of both phases, in a ring of 32 bits.

GMW: a ReLU of 24 bits takes 190 bytes offline and 22 online, a truncation 60 and 9, a square with its two truncations
309 and 26; a garbled ReLU about 2,600, while truncations and squares have no garbled form. The HE of the maps around is
not in it.
"""

from __future__ import annotations

from collections.abc import Mapping

from sphynx.reduce.settings import Backend
from sphynx.space.reduced import IDENTITY, RELU, REMOVED, SQUARE

RELATIVE_PRICES: Mapping[Backend, Mapping[str, float]] = {
    "gmw": {RELU: 1.0, SQUARE: 335 / 212, IDENTITY: 69 / 212, REMOVED: 0.0},
    "gc": {RELU: 1.0, SQUARE: 335 / 2600, IDENTITY: 69 / 2600, REMOVED: 0.0},
}


def kinds_worth(backend: Backend) -> tuple[str, ...]:
    """Whatever is cheaper than a ReLU, and the ReLU itself."""
    prices = RELATIVE_PRICES[backend]
    return tuple(kind for kind, price in prices.items() if price < 1 or kind == RELU)
