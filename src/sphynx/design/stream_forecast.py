"""How long the stages of a stream's design will take: real steps of teacher and student are timed on this device.

Views are counted as a third of an epoch of each teacher's training, which goes backward too, and an epoch of a search
for an allocation as three of the student's, whose step compares three candidates.
"""

from __future__ import annotations

import dataclasses
import time
from functools import cached_property
from pathlib import Path

import torch

from sphynx.data.images import Data
from sphynx.design.stream_order import StreamRequest, teacher_design
from sphynx.design.time_budget import Estimate, fit
from sphynx.design.timing import run_end, training_epoch_seconds
from sphynx.network.build import build_network
from sphynx.network.ensemble import Ensemble
from sphynx.run.progress import QUIET
from sphynx.space.files import AnyDesign
from sphynx.space.stream import StreamDesign
from sphynx.train.job import Job
from sphynx.train.processes import Processes
from sphynx.train.recipe import Recipe

LEAST_EPOCHS = {"teacher": 3, "views": 1, "allocation": 2, "training": 3}
FORWARD = 1 / 3  # of a training step
COMPARED = 3  # candidates in a step of the search


class StreamForecast:
    def __init__(self, request: StreamRequest, data: Data, design: StreamDesign, device: torch.device) -> None:
        self.request, self.data, self.design, self.device = request, data, design, device
        self.teacher = teacher_design(data)

    def estimates(self) -> tuple[Estimate, ...]:
        started, budget = time.monotonic(), self.request.time_budget
        found = self._stages()
        if budget is None:
            return found
        return fit(found, max(budget - (time.monotonic() - started), 0.0), self._remedy())

    def _stages(self) -> tuple[Estimate, ...]:
        request, recipe = self.request, self.request.training
        found = []
        if request.taught and not request.given:
            seconds, end = self._teacher_seconds(self.teacher, request.teaching), self._end(self.teacher)
            found.append(_estimate("teacher", seconds, request.teaching.epochs, request.teachers, end))
        if request.allocating is not None:
            seconds = COMPARED * self._student_seconds
            found.append(_estimate("allocation", seconds, request.allocating.epochs))
        if request.taught and recipe.view_epochs:
            seconds = FORWARD * sum(self._teacher_seconds(design, recipe.undistilled()) for design in self._taught_by)
            found.append(_estimate("views", seconds, min(recipe.view_epochs, recipe.epochs)))
        end = self._end(self.design)
        found.append(_estimate("training", self._student_seconds, recipe.epochs, request.seeds, end))
        return tuple(found)

    @property
    def _taught_by(self) -> list[AnyDesign]:
        given = [one.network.design for one in self.request.given]
        return given or [self.teacher] * self.request.teachers

    @cached_property
    def _student_seconds(self) -> float:
        """With kept views no step runs the teacher."""
        job = self._job(self.design, self.request.training)
        if not self.request.taught:
            return training_epoch_seconds(job)
        if self.request.training.view_epochs:
            return training_epoch_seconds(job, from_views=True)
        taught = dataclasses.replace(job, teacher=Ensemble([build_network(one) for one in self._taught_by]))
        return training_epoch_seconds(taught)

    def _teacher_seconds(self, design: AnyDesign, recipe: Recipe) -> float:
        return training_epoch_seconds(self._job(design, recipe))

    def _end(self, design: AnyDesign) -> float:
        return run_end(self._job(design, self.request.teaching)).seconds(len(self.data.test))

    def _job(self, design: AnyDesign, recipe: Recipe) -> Job:
        return Job(design, self.data, recipe, Path(), processes=Processes(self.device), voice=QUIET)

    def _remedy(self) -> str:
        request = self.request
        shorter = [
            *(["give a trained `teacher`"] if request.taught and not request.given else []),
            *(['give `allocation="planned"`'] if request.allocating is not None else []),
            *(["use fewer `seeds`"] if request.seeds > 1 else []),
        ]
        return f"Give more time{''.join(f', or {words}' for words in shorter)}."


def _estimate(stage: str, seconds: float, epochs: int, runs: int = 1, end_seconds: float = 0.0) -> Estimate:
    return Estimate(stage, seconds, epochs, min(epochs, LEAST_EPOCHS[stage]), runs, end_seconds=end_seconds)
