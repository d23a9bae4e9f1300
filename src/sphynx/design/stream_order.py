"""A request to the pipeline of streams, and how it is read from the settings: recipes by the data, teachers by name.

`auto` is `frontier` beyond 20,000 training images, from wide ResNets by `teacher`; up to there `distil-small`, from a
small one by `small`. Images of 128 pixels or more are taught by ResNet18.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphynx.data.images import Data, DataFace
from sphynx.design.request import FEW_IMAGES, long_enough, placement_recipe, training_recipe
from sphynx.design.settings import Budget, DesignSettings
from sphynx.design.stages import split_by_stage
from sphynx.design.time_budget import parse_duration
from sphynx.errors import InputError
from sphynx.network.trained import TrainedNetwork, load_trained
from sphynx.run.settings import AUTO
from sphynx.search.placement.recipe import PlacementRecipe, load_placement_recipe
from sphynx.space.choices import IMAGENET_STEM_FROM
from sphynx.space.design import stem_for
from sphynx.space.prices import Prices, load_prices
from sphynx.space.reference import ResNet18Design, WideResNetDesign
from sphynx.space.tally import Shape
from sphynx.train.recipe import Recipe, load_recipe
from sphynx.train.views import weights_digest
from sphynx.zoo.shipped import model_path

STAGES = ("teacher", "allocation", "training")
TAUGHT, TAUGHT_SMALL, TEACHER = "frontier", "distil-small", "teacher"
LARGE_TEACHER, SMALL_TEACHER = (16, 8), (10, 2)  # depth and width of a wide ResNet
RESNET_WIDTH = 64

TeacherDesign = ResNet18Design | WideResNetDesign


@dataclass(frozen=True)
class GivenTeacher:
    name: str
    network: TrainedNetwork


@dataclass(frozen=True)
class StreamRequest:
    relu_budget: int
    training: Recipe
    teaching: Recipe  # of teachers that are trained
    teachers: int = 1  # that many are trained, where none is given
    given: tuple[GivenTeacher, ...] = ()
    allocating: PlacementRecipe | None = None  # of the search for an allocation; None: as planned
    prices: Prices | None = None  # of the planned network's channels: allocations of its seconds; None: of its ReLUs
    tolerance: float = 0.05
    seed: int = 0
    seeds: int = 1
    time_budget: float | None = None  # seconds

    @property
    def taught(self) -> bool:
        return self.training.distillation != "none"

    def to_json(self) -> dict[str, Any]:
        described = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        for name in ("training", "teaching", "allocating", "prices"):
            described[name] = None if described[name] is None else described[name].to_json()
        described["given"] = [weights_digest(teacher.network.module) for teacher in self.given]
        return {"family": "stream", **described}


class StreamOrder:
    """The settings of a design of a stream, read."""

    def __init__(self, settings: DesignSettings, budget: Budget) -> None:
        self.settings = settings
        self._budget = budget
        time = settings.time_budget
        self._time_budget = parse_duration(time) if isinstance(time, str) else time
        self._changes = split_by_stage(STAGES, settings.settings)
        self._given = tuple(_load(one) for one in _listed(settings.teacher))
        if self._given and settings.teachers > 1:
            raise InputError(
                "`teachers` counts those that are trained, and `teacher` gives trained ones",
                where="`teachers`",
                remedy="Leave `teachers` or `teacher` out.",
            )
        if settings.allocation == "planned" and (self._changes["allocation"] or settings.prices is not None):
            raise InputError(
                "no allocation is searched, so its settings and prices have no effect",
                where="`settings`, allocation" if self._changes["allocation"] else "`prices`",
                remedy='Give `allocation="search"`, or leave them out.',
            )
        self._prices = None if settings.prices is None else load_prices(Path(settings.prices))

    def request(self, data: Data) -> StreamRequest:
        asked, changes = self.settings, self._changes
        training = taught_recipe(asked.recipe, changes["training"], data)
        return StreamRequest(
            relu_budget=self._budget.relus,
            training=training,
            teaching=teaching_recipe(asked.teacher_recipe, changes["teacher"], data),
            teachers=asked.teachers,
            given=self._given,
            allocating=_allocating(changes["allocation"], training, data) if asked.allocation == "search" else None,
            prices=self._prices,
            tolerance=self._budget.tolerance,
            seed=asked.seed,
            seeds=asked.seeds,
            time_budget=self._time_budget,
        )


def taught_recipe(name: str, overrides: Mapping[str, Any], data: DataFace) -> Recipe:
    if name != AUTO:
        return load_recipe(name, overrides)
    recipe = load_recipe(TAUGHT_SMALL if _are_few(data) else TAUGHT, overrides)
    return recipe if "epochs" in overrides else long_enough(recipe, len(data.train))


def teaching_recipe(name: str, overrides: Mapping[str, Any], data: DataFace) -> Recipe:
    if name == AUTO and not _are_few(data):
        return load_recipe(TEACHER, overrides)
    return training_recipe(name, overrides, data)[1]


def teacher_design(data: DataFace) -> TeacherDesign:
    shape = Shape(*data.image)
    if min(shape.height, shape.width) >= IMAGENET_STEM_FROM:
        return ResNet18Design(RESNET_WIDTH, shape, data.classes, stem_for("auto", shape.height))
    depth, width = SMALL_TEACHER if _are_few(data) else LARGE_TEACHER
    return WideResNetDesign(depth, width, shape, data.classes)


def _allocating(overrides: Mapping[str, Any], training: Recipe, data: DataFace) -> PlacementRecipe:
    """With views the search listens to the teacher; else its networks learn from labels, on half of the images."""
    if training.view_epochs:
        return load_placement_recipe("taught", overrides)
    return placement_recipe(AUTO, overrides, data)


def _are_few(data: DataFace) -> bool:
    return len(data.train) <= FEW_IMAGES


def _listed(
    teacher: TrainedNetwork | str | Path | Sequence[TrainedNetwork | str | Path],
) -> Sequence[TrainedNetwork | str | Path]:
    if teacher == AUTO:
        return ()
    if isinstance(teacher, str) and not Path(teacher).exists():
        return teacher.split(",")
    return (teacher,) if isinstance(teacher, TrainedNetwork | str | Path) else teacher


def _load(teacher: TrainedNetwork | str | Path) -> GivenTeacher:
    if isinstance(teacher, TrainedNetwork):
        return GivenTeacher(type(teacher.design).__name__.removesuffix("Design"), teacher)
    return GivenTeacher(str(teacher), load_trained(model_path(teacher)))
