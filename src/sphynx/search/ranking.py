"""Which found cells are really good: several seeds and their spread, a ranking by short retraining on held-out data.

The trainer is passed in (search does not know how networks are trained): from a genotype and a number of epochs to
held-out accuracy. Many drawn cells go in `rounds`, from short trainings of all to longer ones of the best: successive
halving (Jamieson and Talwalkar 2016).

Drawn cells are trained for few epochs, the better third again for three times as many, until few are left: these for
the whole length, beside the cells that a search found or a paper published. Those are never dropped early: on
CIFAR-100 the order after 5 epochs said little about that after 15 (docs/results.md). A cell is trained anew in each
round, not on: the rate's schedule depends on the length, and a training that was to end after 5 epochs is not the
beginning of one that ends after 15. Epochs in all, for a whole length of 15 and two cells beside those that were drawn
(all cells for all epochs in brackets):

    2 drawn: 60    6: 90 (120)    14: 113 (240)    30: 200 (480)

That makes many random cells affordable, which, trained by themselves, are hard to beat (Li and Talwalkar 2019).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

from sphynx.record import Record
from sphynx.run.sweep import IN_TURN, Sweep
from sphynx.search.supernet.cellspace import CellSpace, agreement
from sphynx.space.genotype import Genotype

Retrain = Callable[[Genotype, int], float]
SHARE = 3  # one in SHARE goes on, for SHARE times the epochs
FEW = 5  # trained for the whole length: found cells, published ones, and three random ones
LEAST_AT_THE_END = 2  # drawn ones, however many others there are: something to compare with
LEAST_EPOCHS = 2  # fewer do not make a schedule


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


@dataclass(frozen=True)
class Training(Record):
    epochs: int
    accuracy: float


@dataclass(frozen=True)
class Ranked(Record):
    label: str
    genotype: Genotype
    trainings: tuple[Training, ...]  # one per round that it was in

    @property
    def accuracy(self) -> float:
        """The accuracy of the longest training: comparable only with others of that length, since a longer one gives
        more."""
        return self.trainings[-1].accuracy

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "accuracy": self.accuracy}


def rank(
    cells: Mapping[str, Genotype],
    drawn: Mapping[str, Genotype],
    retrain: Retrain,
    epochs: int,
    least_epochs: int = LEAST_EPOCHS,
    sweep: Sweep = IN_TURN,
) -> tuple[Ranked, ...]:
    """Best first: those of the last round, then those that the round before it beat, and so on.

    `epochs` are those of the last round. `cells` are trained for as many, `drawn` ones where they come so far. Equal
    cells are trained once. No round is shorter than `least_epochs`.
    """
    every = {**cells, **drawn}
    order = list(drawn)
    trainings: dict[str, list[Training]] = {label: [] for label in every}
    for one in rounds(len(drawn), len(cells), epochs, least_epochs):
        if one.epochs == epochs:
            order = [*cells, *order]
        labels: dict[Genotype, str] = {}
        for label in order[: one.runs]:
            labels.setdefault(every[label], label)
        pieces = {
            f"{label}, {one.epochs} epochs": partial(retrain, cells, one.epochs) for cells, label in labels.items()
        }
        accuracies = dict(zip(labels, sweep.map(pieces), strict=True))
        for label in order[: one.runs]:
            trainings[label].append(Training(one.epochs, accuracies[every[label]]))
        order[: one.runs] = sorted(order[: one.runs], key=lambda label: -trainings[label][-1].accuracy)
    return tuple(Ranked(label, every[label], tuple(trainings[label])) for label in order)


def random_cells(space: CellSpace, count: int, seed: int) -> dict[str, Genotype]:
    """Draw random cells, beside which found cells are ranked; ranked by themselves (retrained, not shared) they are a
    search."""
    generator = random.Random(seed)
    return {f"random cells {number}": space.random_genotype(generator, f"random-{number}") for number in range(count)}


@dataclass(frozen=True)
class Spread(Record):
    """How much a result depends on the seed. `agreement`: the mean share of edges that two seeds' cells share."""

    mean: float
    deviation: float | None  # of one seed there is none
    agreement: float | None


def spread(genotypes: Sequence[Genotype], scores: Sequence[float]) -> Spread:
    pairs = [agreement(one, other) for one, other in combinations(genotypes, 2)]
    return Spread(fmean(scores), stdev(scores) if len(scores) > 1 else None, fmean(pairs) if pairs else None)
