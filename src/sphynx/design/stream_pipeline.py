"""From a data set and a ReLU budget to a trained stream network: plan, teachers, allocation, views, training.

    out/design.json  model.safetensors  normalisation.json     the network (of the first seed)
    out/result.json    its accuracy, its teachers             out/stages.json   what is finished
    out/teacher/seed-N  out/allocation  out/training/seed-N  each stage's own runs
    out/views.safetensors  the teachers' answers, which all seeds learn from

Nothing here is chosen by a number that was measured on test images. An allocation is chosen on held-out training
images, by a search whose weights learn from views that leave these out, or from one half of the images where there are
no views.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from sphynx.data.images import Data
from sphynx.design.staged import StagedDesign
from sphynx.design.stream_forecast import StreamForecast
from sphynx.design.stream_order import StreamRequest
from sphynx.design.stream_results import StreamDesignResult, TeacherResult, ViewsMade
from sphynx.design.taught import taught_lessons
from sphynx.design.time_budget import Estimate
from sphynx.errors import InterruptedWorkError
from sphynx.network.stored import NORMALISATION
from sphynx.run.folder import RunFolder
from sphynx.run.stages import Stages
from sphynx.run.work import HERE, Work
from sphynx.search.allocation.allocate import AllocationResult, allocate
from sphynx.search.allocation.candidates import PARTS, Budget, allocations, latency_budget, relu_budget
from sphynx.space.artifact import MODEL
from sphynx.space.stream import StreamDesign
from sphynx.space.stream_planner import plan_stream
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import HELD_OUT_SEED, open_views
from sphynx.train.processes import Processes
from sphynx.train.recipe import Recipe, with_epochs
from sphynx.train.results import RESULT, TrainSummary
from sphynx.train.runs import train_all
from sphynx.train.views import VIEWS
from sphynx.zoo.teachers import add_teacher

RANDOM_ALLOCATIONS = 4
MULTIPLE = 8  # of channels: what tensor cores want, and the planner takes
HELD_OUT = 0.1  # that views of a search leave out


class StreamPipeline(StagedDesign):
    """The pipeline of streams."""

    def __init__(self, request: StreamRequest, data: Data, out: Path, work: Work = HERE) -> None:
        """`work.sweep` runs what is independent: teachers, seeds."""
        self.request, self.data, self.out, self.work = request, data, out, work
        self.plans = plan_stream(request.relu_budget, request.tolerance, Shape(*data.image), data.classes)
        self.design = self.plans.design
        self.forecast = StreamForecast(request, data, self.design, work.device)
        asked = {**request.to_json(), "data": data.identity()}
        self.stages = Stages(out, asked, resume=work.resume, preliminary=("estimate",), data=data.content)

    def estimates(self) -> tuple[Estimate, ...]:
        return self.forecast.estimates()

    def run(self) -> StreamDesignResult:
        """All stages; what it returns it also writes to result.json."""
        try:
            return self._run({estimate.stage: estimate for estimate in self.schedule()})
        except KeyboardInterrupt:
            raise InterruptedWorkError(where=str(self.out)) from None

    def _run(self, plan: Mapping[str, Estimate]) -> StreamDesignResult:
        recipe = with_epochs(self.request.training, plan["training"].epochs)
        if "views" in plan:
            recipe = dataclasses.replace(recipe, view_epochs=plan["views"].epochs)
        trained = self._train_teachers(plan["teacher"], plan) if "teacher" in plan else None
        design, allocated_by = self.design, "plan"
        if "allocation" in plan:
            self._announce("allocation", plan)
            epochs = plan["allocation"].epochs
            found = self.stages.run("allocation", AllocationResult, lambda: self._allocate(recipe, epochs))
            design, allocated_by = self._candidates[found.best.name], found.method
        design.save(self.out / "design.json")
        if "views" in plan:
            self._announce("views", plan)
            self.stages.run("views", ViewsMade, lambda: self._make_views(design, recipe))
        self._announce("training", plan)
        summary = self.stages.run("training", TrainSummary, lambda: self._train(design, recipe))
        first = self.out / "training" / f"seed-{self.request.seed}"
        for name in (MODEL, NORMALISATION):
            shutil.copy(first / name, self.out / name)  # with its mode: weights are for their owner
        return self._finish(design, recipe, summary, trained, allocated_by)

    def _train_teachers(self, planned: Estimate, plan: Mapping[str, Estimate]) -> TrainSummary:
        self._announce("teacher", plan)
        recipe, first = with_epochs(self.request.teaching, planned.epochs), self.request.seed
        jobs = {
            f"teacher, seed {seed}": Job(
                self.forecast.teacher, self.data, recipe, self._teacher_folder(seed), seed, resume=True, **self._where
            )
            for seed in range(first, first + self.request.teachers)
        }
        return self.stages.run(
            "teacher", TrainSummary, lambda: TrainSummary(train_all(jobs, self.work.sweep, self.work.voice))
        )

    def _allocate(self, recipe: Recipe, epochs: int) -> AllocationResult:
        allocating = self.request.allocating
        assert allocating is not None
        out, lessons = self.out / "allocation", None
        if recipe.view_epochs:
            held_out = dataclasses.replace(recipe, held_out=recipe.held_out or HELD_OUT)
            lessons = taught_lessons(self._taught(Job(self.design, self.data, held_out, out, **self._where)))
        work, allocating = self.work.piece(self.request.seed), dataclasses.replace(allocating, epochs=epochs)
        return allocate(self._candidates, self.data, allocating, self._budget, out, work, lessons=lessons)

    @cached_property
    def _budget(self) -> Budget:
        """As much as the planned network costs."""
        prices = self.request.prices
        if prices is None:
            return relu_budget(self.design, self.design.relus, MULTIPLE)
        return latency_budget(self.design, prices.seconds(self.design), prices, MULTIPLE)

    @cached_property
    def _candidates(self) -> dict[str, StreamDesign]:
        return allocations(self.design, self._budget, parts=PARTS, randoms=RANDOM_ALLOCATIONS, seed=self.request.seed)

    def _make_views(self, design: StreamDesign, recipe: Recipe) -> ViewsMade:
        job = self._taught(Job(design, self.data, recipe, self.out, **self._where))
        images, _ = self.data.train.split(recipe.held_out, HELD_OUT_SEED)
        open_views(job, images)
        return ViewsMade(recipe.view_epochs)

    def _train(self, design: StreamDesign, recipe: Recipe) -> TrainSummary:
        first, jobs = self.request.seed, {}
        for seed in range(first, first + self.request.seeds):
            out = self.out / "training" / f"seed-{seed}"
            job = Job(design, self.data, recipe, out, seed, views=self.out / VIEWS, resume=True, **self._where)
            jobs[f"training, seed {seed}"] = self._taught(job)
        return TrainSummary(train_all(jobs, self.work.sweep, self.work.voice))

    def _taught(self, job: Job) -> Job:
        if not self.request.taught:
            return job
        first = self.request.seed
        trained = [self._teacher_folder(seed) for seed in range(first, first + self.request.teachers)]
        teachers = [one.network for one in self.request.given] or trained
        return add_teacher(job, teachers if len(teachers) > 1 else teachers[0])

    def _teacher_folder(self, seed: int) -> Path:
        return self.out / "teacher" / f"seed-{seed}"

    @property
    def _where(self) -> dict[str, Any]:
        return {"voice": self.work.voice, "processes": Processes(self.work.device)}

    def _finish(
        self,
        design: StreamDesign,
        recipe: Recipe,
        summary: TrainSummary,
        trained: TrainSummary | None,
        allocated_by: str,
    ) -> StreamDesignResult:
        teachers = [TeacherResult(one.name) for one in self.request.given]
        if trained is not None:
            kind = type(self.forecast.teacher).__name__.removesuffix("Design")
            teachers = [TeacherResult(f"{kind}, seed {one.seed}", one.accuracy) for one in trained.runs]
        result = StreamDesignResult(
            data=self.data.name,
            data_source=self.data.source,
            relu_budget=self.request.relu_budget,
            relus=design.relus,
            stages=str(design),
            blocks=design.blocks,
            planned=str(self.design),
            allocated_by=allocated_by,
            teachers=tuple(teachers) if self.request.taught else (),
            accuracy=summary.accuracy,
            accuracy_std=summary.accuracy_std,
            accuracies=summary.accuracies,
            seeds=summary.seeds,
            training=recipe,
            minutes=self.stages.minutes(),
        )
        RunFolder(self.out).write_json(RESULT, result.to_json())
        return result
