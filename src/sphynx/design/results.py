"""Results of a design: the network's plan and accuracies, its cells ranked, and networks with other cells beside it.

`DesignResult` is a design folder's result.json; `Schedule`, `Ranking` and `ComparedTrainings` are what stages keep.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sphynx.data.source import DataSource
from sphynx.design.time_budget import Estimate
from sphynx.record import Record
from sphynx.search.ranking import Ranked
from sphynx.train.recipe import Recipe
from sphynx.train.results import TrainSummary


@dataclass(frozen=True)
class Row(Record):
    """Networks that differ from those of other rows in their cells only."""

    cells: str
    accuracies: tuple[float, ...]  # on the test images, at the final epoch, one per seed
    mean: float
    deviation: float | None  # of one seed there is none
    parameters: int  # of the first seed's network
    minutes: float


@dataclass(frozen=True)
class Gain(Record):
    """Difference of two means, in points (hundredths of accuracy). Of one seed each there is no standard error."""

    against: str
    points: float
    standard_error: float | None

    def __str__(self) -> str:
        word = "gained" if self.points > 0 else "lost" if self.points < 0 else "changed"
        if self.standard_error is None:
            spread = "one seed: no spread is known"
        else:
            unsure = "" if abs(self.points) > 2 * self.standard_error else ": within chance"
            spread = f"standard error {self.standard_error:.2f}{unsure}"
        return f"{word} {abs(self.points):.2f} points against {self.against} ({spread})"


def row_of(cells: str, trained: TrainSummary) -> Row:
    return Row(
        cells, trained.accuracies, trained.accuracy, trained.accuracy_std, trained.runs[0].parameters, trained.minutes
    )


def gain(own: Row, other: Row) -> Gain:
    error = None
    if own.deviation is not None and other.deviation is not None:
        error = math.sqrt(
            sum(row.deviation**2 / len(row.accuracies) for row in (own, other) if row.deviation is not None)
        )
    return Gain(other.cells, 100 * (own.mean - other.mean), None if error is None else 100 * error)


@dataclass(frozen=True)
class Comparison(Record):
    recipe: Recipe | None  # None: nothing was compared
    rows: tuple[Row, ...]  # the design's own first

    @property
    def gains(self) -> tuple[Gain, ...]:
        """Gains of the first row over each other one."""
        return tuple(gain(self.rows[0], other) for other in self.rows[1:])

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "gains": [one.to_json() for one in self.gains]}


@dataclass(frozen=True)
class ShortTraining(Record):
    epochs: int
    held_out: float  # accuracy on held-out training images


@dataclass(frozen=True)
class RankedCells(Record):
    cells: str
    held_out: float  # of the longest training
    trainings: tuple[ShortTraining, ...] = ()


@dataclass(frozen=True, kw_only=True)
class DesignResult(Record):
    """The result of a design: the network, how it was chosen, and its accuracy compared with networks of other cells.

    >>> result = sphynx.design_network("digits", relu_budget="1k", out="runs/designed")  # doctest: +SKIP
    >>> result.relus, result.accuracy, result.cells  # doctest: +SKIP
    """

    data: str
    data_source: DataSource | None = None  # where the data were opened from, where that is known
    relu_budget: int
    relus: int
    channels: int
    depth: int
    reduce_positions: tuple[int, ...]
    placed_by: str
    cells: str
    ranking: tuple[RankedCells, ...] = ()  # best first; empty: nothing was ranked
    accuracy: float  # on the test images, at the final epoch; the mean over seeds
    accuracy_std: float | None
    accuracies: tuple[float, ...]
    seeds: tuple[int, ...]
    training: Recipe
    comparison: Comparison
    minutes: Mapping[str, float]  # per stage


@dataclass(frozen=True)
class Schedule(Record):
    stages: tuple[Estimate, ...]


@dataclass(frozen=True)
class Ranking(Record):
    ranking: tuple[Ranked, ...]  # best first

    def short(self) -> tuple[RankedCells, ...]:
        """Without the cells themselves."""
        return tuple(
            RankedCells(
                ranked.label, ranked.accuracy, tuple(ShortTraining(t.epochs, t.accuracy) for t in ranked.trainings)
            )
            for ranked in self.ranking
        )


@dataclass(frozen=True)
class ComparedTrainings(Record):
    own: TrainSummary | None  # None: the design's own training is by the same recipe
    others: Mapping[str, TrainSummary]  # by what their cells are called
