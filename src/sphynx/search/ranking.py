"""Which found cells are really good: several seeds and their spread, a ranking by short retraining on held-out data.

The trainer is passed in (search does not know how networks are trained): from a genotype to held-out accuracy.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev
from typing import Any

from sphynx.search.cellspace import CellSpace, agreement
from sphynx.space.genotype import Genotype

Retrain = Callable[[Genotype], float]


@dataclass(frozen=True)
class Ranked:
    label: str
    genotype: Genotype
    accuracy: float

    def to_json(self) -> dict[str, Any]:
        return {"label": self.label, "accuracy": self.accuracy, "genotype": self.genotype.to_json()}


def rank(cells: Mapping[str, Genotype], retrain: Retrain) -> tuple[Ranked, ...]:
    """Best first. Equal cells are trained once."""
    accuracies: dict[Genotype, float] = {}
    ranked = []
    for label, genotype in cells.items():
        if genotype not in accuracies:
            accuracies[genotype] = retrain(genotype)
        ranked.append(Ranked(label, genotype, accuracies[genotype]))
    return tuple(sorted(ranked, key=lambda entry: -entry.accuracy))


def random_cells(space: CellSpace, count: int, seed: int) -> dict[str, Genotype]:
    """The baseline of a ranking, and by itself (retrained, not shared) a search."""
    generator = random.Random(seed)
    return {f"random cells {number}": space.random_genotype(generator, f"random-{number}") for number in range(count)}


@dataclass(frozen=True)
class Spread:
    """How much a result depends on the seed. `agreement`: the mean share of edges that two seeds' cells share."""

    mean: float
    deviation: float | None  # of one seed there is none
    agreement: float | None


def spread(genotypes: Sequence[Genotype], scores: Sequence[float]) -> Spread:
    pairs = [agreement(one, other) for one, other in combinations(genotypes, 2)]
    return Spread(fmean(scores), stdev(scores) if len(scores) > 1 else None, fmean(pairs) if pairs else None)
