"""How many epochs a ranking gives to how many cells: successive halving (Jamieson and Talwalkar 2016).

Drawn cells are trained for few epochs, the better third again for three times as many, until few are left: these for
the whole length, beside the cells that a search found or a paper published. Those are never dropped early: on
CIFAR-100 the order after 5 epochs said little about that after 15 (docs/results.md). A cell is trained anew in each
round, not on: the rate's schedule depends on the length, and a training that was to end after 5 epochs is no beginning
of one that ends after 15. Epochs in all, for a whole length of 15 and two cells beside those that were drawn (all
cells for all epochs in brackets):

    2 drawn: 60    6: 90 (120)    14: 113 (240)    30: 200 (480)

That makes many random cells affordable, which, trained by themselves, are hard to beat (Li and Talwalkar 2019).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SHARE = 3  # one in so many goes on, for so many times the epochs
FEW = 5  # so many are trained for the whole length: found cells, published ones, and three random ones
LEAST_AT_THE_END = 2  # drawn ones, however many others there are: something to compare with
LEAST_EPOCHS = 2  # fewer are no schedule


@dataclass(frozen=True)
class Round:
    runs: int
    epochs: int


def rounds(drawn: int, others: int, epochs: int, least_epochs: int = LEAST_EPOCHS) -> tuple[Round, ...]:
    """The last one has `epochs`, and the `others` beside the drawn cells that are left.

    There are no more than the epochs can be divided for: of two epochs there is one round. `least_epochs` is what a
    round must have to say anything, which for few images is more than usual.
    """
    runs, lengths = [drawn], [epochs]
    while runs[-1] > max(FEW - others, LEAST_AT_THE_END) and lengths[0] >= 2 * least_epochs:
        runs.append(math.ceil(runs[-1] / SHARE))
        lengths.insert(0, max(least_epochs, round(lengths[0] / SHARE)))
    runs[-1] += others
    return tuple(Round(*both) for both in zip(runs, lengths, strict=True))
