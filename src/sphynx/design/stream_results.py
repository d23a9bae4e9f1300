"""Results of a design of the family of streams: a folder's result.json, and what its stages keep."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from sphynx.data.source import DataSource
from sphynx.record import Record
from sphynx.train.recipe import Recipe


@dataclass(frozen=True)
class TeacherResult(Record):
    name: str  # a model's, a run's path, or of which kind it is
    accuracy: float | None = None  # on the test images, where it was trained here


@dataclass(frozen=True)
class ViewsMade(Record):
    epochs: int


@dataclass(frozen=True, kw_only=True)
class StreamDesignResult(Record):
    """The result of a design of a stream network: the network, its teachers and its accuracy.

    >>> result = sphynx.design_network("cifar100", relu_budget="25.6k", family="stream", out="runs/c")  # doctest: +SKIP
    >>> result.stages, result.accuracy, result.minutes["teacher"]  # doctest: +SKIP
    """

    family: Literal["stream"] = "stream"
    data: str
    data_source: DataSource | None = None  # where the data were opened from, where that is known
    relu_budget: int
    relus: int
    stages: str
    blocks: int
    planned: str  # the stages before an allocation was searched
    allocated_by: str  # plan, or the method of the search
    teachers: tuple[TeacherResult, ...]
    accuracy: float  # on the test images, at the final epoch; the mean over seeds
    accuracy_std: float | None
    accuracies: tuple[float, ...]
    seeds: tuple[int, ...]
    training: Recipe
    minutes: Mapping[str, float]  # per stage
