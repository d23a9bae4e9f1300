"""Results of a reduction: reduction.json, beside the run's own result.json."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sphynx.record import Record
from sphynx.space.reduced import NonlinearCounts

REDUCTION = "reduction.json"
FORMAT = "sphynx-reduction/1"


@dataclass(frozen=True)
class Reduced(Record):
    """One network within the budget. `accuracy` is by the data's labels, `agreement` with the original's answers, both
    on test images. Where several networks are compared, it is by `held_out_agreement`, on images that none has seen."""

    method: str
    counts: NonlinearCounts
    accuracy: float
    agreement: float
    minutes: float  # of its training
    held_out_agreement: float | None = None


@dataclass(frozen=True)
class ReduceResult(Record):
    """The networks of all methods that were tried; `.best` is the one that is kept.

    >>> result = sphynx.reduce_network("runs/digits", "digits", relu_budget=300, out="runs/fewer")  # doctest: +SKIP
    >>> result.best.counts.relus, result.best.accuracy  # doctest: +SKIP
    """

    relu_budget: int
    original_relus: int
    original_accuracy: float
    tried: tuple[Reduced, ...]

    @property
    def best(self) -> Reduced:
        return max(self.tried, key=lambda one: one.held_out_agreement or 0.0)

    def to_json(self) -> dict[str, Any]:
        return {"format": FORMAT, "best": self.best.method, **super().to_json()}
