"""Results of trainings: of one seed (a run folder's result.json), and of several, with their mean and spread."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

from sphynx.record import Record

RESULT = "result.json"


@dataclass(frozen=True)
class TrainResult(Record):
    accuracy: float  # on the test images, at the final epoch
    top5: float
    test_loss: float
    test_images: int
    data: str
    seed: int
    epochs: int
    minutes: float
    device: str
    processes: int
    parameters: int
    design: str  # its fingerprint
    best_test_accuracy: float | None = None  # over all epochs, where they were tested: what some others report
    bf16_accuracy: float | None = None  # of the same weights by bf16 autocast; on a GPU, or where they were trained so
    balanced_accuracy: float | None = None  # the mean of the classes' accuracies; older runs do not say it
    mcc: float | None = None
    held_out_accuracy: float | None = None  # of the finished network, where the recipe holds images out
    held_out_mcc: float | None = None
    temperature: float | None = None  # that the logits were divided by, where the recipe calibrates
    weights: str | None = None  # their digest, by which its students name it


@dataclass(frozen=True)
class TrainSummary(Record):
    """The seeds of one training. Everything else in its JSON follows from them.

    >>> trained = sphynx.train_network("design.json", "digits", out="runs/seeds", seeds=2)  # doctest: +SKIP
    >>> trained.accuracy, trained.accuracy_std  # doctest: +SKIP
    """

    runs: tuple[TrainResult, ...]

    @property
    def accuracy(self) -> float:
        return statistics.fmean(self.accuracies)

    @property
    def accuracy_std(self) -> float | None:
        """The sample standard deviation; for one seed there is none."""
        return statistics.stdev(self.accuracies) if len(self.runs) > 1 else None

    @property
    def accuracies(self) -> tuple[float, ...]:
        return tuple(run.accuracy for run in self.runs)

    @property
    def mccs(self) -> tuple[float, ...]:
        """None at all where a run does not say it."""
        found = tuple(run.mcc for run in self.runs if run.mcc is not None)
        return found if len(found) == len(self.runs) else ()

    @property
    def seeds(self) -> tuple[int, ...]:
        return tuple(run.seed for run in self.runs)

    @property
    def minutes(self) -> float:
        return round(sum(run.minutes for run in self.runs), 3)

    def to_json(self) -> dict[str, Any]:
        return {
            "accuracy": self.accuracy,
            "accuracy_std": self.accuracy_std,
            "accuracies": list(self.accuracies),
            "mccs": list(self.mccs),
            "seeds": list(self.seeds),
            "minutes": self.minutes,
            **super().to_json(),
        }
