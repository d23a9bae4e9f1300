"""How many epochs a ranking gives to how many cells: successive halving (Jamieson and Talwalkar 2016).

All are trained for few epochs, the better third again for three times as many, until few are left: these for the whole
length, so that the best one is compared at it. A cell is trained anew in each round, not on: the rate's schedule
depends on the length, and a training that was to end after 5 epochs is no beginning of one that ends after 15. Epochs
in all, for a whole length of 15 (all cells for all epochs in brackets):

    4 cells: 60    8: 85 (120)    16: 92 (240)    32: 179 (480)

That makes many random cells affordable, which, trained by themselves, are hard to beat (Li and Talwalkar 2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SHARE = 3  # one in so many goes on, for so many times the epochs
FEW = 5  # so many are trained for the whole length at once: found cells, published ones, and three random ones
LEAST_EPOCHS = 2  # fewer are no schedule


@dataclass(frozen=True)
class Round:
    runs: int
    epochs: int


def rounds(cells: int, epochs: int) -> tuple[Round, ...]:
    """The last one has `epochs`. There are no more than these can be divided for: of two epochs there is one round."""
    runs, lengths = [cells], [epochs]
    while runs[-1] > FEW and lengths[0] >= 2 * LEAST_EPOCHS:
        runs.append(math.ceil(runs[-1] / SHARE))
        lengths.insert(0, max(LEAST_EPOCHS, round(lengths[0] / SHARE)))
    return tuple(Round(*both) for both in zip(runs, lengths, strict=True))
