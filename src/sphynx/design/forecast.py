"""How long a request will take: which networks are timed for which stage, and in which order.

Cells that are still to be found are mostly more expensive than the published ones, since those skip a lot: on digits
and two cores an epoch with three that GAEA found took 1.3, 1.5 and 1.6 times as long. They are timed as cells in which
every edge convolves (1.6 times), so that a forecast errs on the long side; random cells are priced as an average
one. All networks are timed where an early place of their reduce cells stands for the one that is still to be found.

Single networks come first, supernets and the candidates of a placement last: they take longer to build and to time, and
a time budget that does not even do for the training is refused without them.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from statistics import fmean

import torch

from sphynx.data.images import Data, held_out_count
from sphynx.design.outline import Outline
from sphynx.design.request import Request
from sphynx.design.retraining import HELD_OUT, least_ranking_epochs, ranking_recipe
from sphynx.design.time_budget import Estimate, fit, refuse_too_little
from sphynx.design.timing import RunEnd, placement_epoch_seconds, run_end, search_epoch_seconds, training_epoch_seconds
from sphynx.run.progress import QUIET
from sphynx.search.ranking import LEAST_EPOCHS as LEAST_RANKING_EPOCHS
from sphynx.search.ranking import random_cells
from sphynx.search.supernet.cellspace import CellSpace
from sphynx.space.account import account_of
from sphynx.space.cell import Edge
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX
from sphynx.train.job import Job
from sphynx.train.processes import Processes
from sphynx.train.recipe import Recipe

TIMED_FIRST = ("training", "comparison", "ranking", "placement", "cells")
LEAST_EPOCHS = {"cells": 2, "ranking": LEAST_RANKING_EPOCHS, "placement": 2, "training": 3, "comparison": 3}
DRAWN = 20  # random cells, of which the middle one by multiplications stands for all


class Forecast:
    """`estimates` measures. A stage that the request does not ask for has none."""

    def __init__(self, request: Request, data: Data, outline: Outline, device: torch.device) -> None:
        self.request, self.data, self.outline, self.device = request, data, outline, device
        self.ranking: Recipe = ranking_recipe(request.training, len(data.train))
        self._epoch_seconds: dict[tuple[Genotype, Recipe], float] = {}

    def estimates(self) -> tuple[Estimate, ...]:
        """Estimates in the order of the stages; under a time budget, with epochs that fit what is left of it."""
        started, budget_seconds, found = time.monotonic(), self.request.time_budget, dict[str, Estimate]()

        def left() -> float:
            return max((budget_seconds or 0.0) - (time.monotonic() - started), 0.0)

        asked = self._stages()
        for stage in sorted(asked, key=TIMED_FIRST.index):
            found[stage] = asked[stage]()
            others = [other for other in asked if other not in found]
            if budget_seconds is not None and others:
                refuse_too_little(list(found.values()), left(), self._remedy(), others=others)
        ordered = [found[stage] for stage in asked]
        return tuple(ordered) if budget_seconds is None else fit(ordered, left(), self._remedy())

    def _stages(self) -> dict[str, Callable[[], Estimate]]:
        """The stages that the request asks for, as they will run."""
        request = self.request
        return {
            **({"cells": self._cells} if request.strategy else {}),
            **({"ranking": self._ranking} if request.strategy and request.rivals else {}),
            **({"placement": self._placement} if self.outline.places else {}),
            "training": self._training,
            **({"comparison": self._comparison} if request.comparison is not None else {}),
        }

    def _cells(self) -> Estimate:
        recipe = self.outline.search_recipe
        seconds = search_epoch_seconds(self.data, self.request.strategy, recipe, self.device)
        return _estimate("cells", seconds, recipe.epochs)

    def _ranking(self) -> Estimate:
        training, images, rivals = self.request.training, len(self.data.train), self.request.rivals
        cells = [self._own, SPHYNX, *[self._typical] * rivals]
        seconds = (1 - HELD_OUT) * fmean(self._seconds(each, training) for each in cells)
        return Estimate(
            "ranking",
            seconds,
            self.ranking.epochs,
            min(self.ranking.epochs, least_ranking_epochs(training, images)),
            runs=len(cells),
            drawn=rivals,
            end_seconds=self._run_end.seconds(held_out_count(images, HELD_OUT)),
        )

    def _placement(self) -> Estimate:
        recipe, places = self.request.placing, self.outline.places
        design = dataclasses.replace(self.outline.design, genotype=self._own)
        seconds = placement_epoch_seconds(design, self.data, recipe, places, self.device)
        at_the_end = (
            len(places) * (len(self.data.train) // 2) * self._run_end.image_seconds
        )  # every candidate's accuracy
        return _estimate("placement", seconds, recipe.epochs, end_seconds=at_the_end)

    def _training(self) -> Estimate:
        recipe, seeds = self.request.training, self.request.seeds
        return _estimate("training", self._seconds(self._own, recipe), recipe.epochs, seeds, self._test_seconds)

    def _comparison(self) -> Estimate:
        request, recipe = self.request, self.request.comparison
        assert recipe is not None
        cells = [
            self._typical,
            *([SPHYNX] if request.strategy or request.genotype != SPHYNX else []),
            *([self._own] if recipe != request.training else []),
        ]
        seconds = fmean(self._seconds(each, recipe) for each in cells)
        return _estimate("comparison", seconds, recipe.epochs, request.seeds * len(cells), self._test_seconds)

    @property
    def _own(self) -> Genotype:
        """The network's cells, or the stand-in for those that will be found."""
        return expensive_cells(self._space) if self.request.strategy else self.request.genotype

    @cached_property
    def _typical(self) -> Genotype:
        drawn = random_cells(self._space, DRAWN, self.request.seed).values()
        return sorted(drawn, key=lambda cells: account_of(self._network(cells)).total.macs)[DRAWN // 2]

    @property
    def _space(self) -> CellSpace:
        return CellSpace(self.request.search.nodes if self.request.strategy else self.request.genotype.nodes)

    @cached_property
    def _run_end(self) -> RunEnd:
        return run_end(self._job(self._own, self.request.training))

    @property
    def _test_seconds(self) -> float:
        return self._run_end.seconds(len(self.data.test))

    def _seconds(self, cells: Genotype, recipe: Recipe) -> float:
        """Seconds of an epoch over all training images; each network is timed once."""
        if (cells, recipe) not in self._epoch_seconds:
            self._epoch_seconds[cells, recipe] = training_epoch_seconds(self._job(cells, recipe))
        return self._epoch_seconds[cells, recipe]

    def _job(self, cells: Genotype, recipe: Recipe) -> Job:
        return Job(self._network(cells), self.data, recipe, Path(), processes=Processes(self.device), voice=QUIET)

    def _network(self, cells: Genotype) -> Design:
        return dataclasses.replace(self.outline.at_an_early_place, genotype=cells)

    def _remedy(self) -> str:
        request = self.request
        shorter = [
            *(["leave out `strategy`"] if request.strategy else []),
            *(["give `random_cells=0`"] if request.strategy and request.rivals else []),
            *(['use `reduce_at="fixed"`'] if self.outline.places else []),
            *(["use fewer `seeds`"] if request.seeds > 1 else []),
            *(['give `compare="none"`'] if request.comparison is not None else []),
        ]
        return f"Give more time{''.join(f', or {words}' for words in shorter)}."


def expensive_cells(space: CellSpace) -> Genotype:
    """Every edge convolves, 3x3 and 5x5 in turn, and comes from one of the two nodes before."""
    cell = tuple((Edge("conv3", target - 2), Edge("conv5", target - 1)) for target in space.intermediates)
    return Genotype(cell, cell, name="expensive")


def _estimate(stage: str, seconds: float, epochs: int, runs: int = 1, end_seconds: float = 0.0) -> Estimate:
    return Estimate(stage, seconds, epochs, min(epochs, LEAST_EPOCHS[stage]), runs, end_seconds=end_seconds)
