"""A network for chest X-rays, chosen on patients that are held out, then judged on the test images beside ResNet18.

    teachers     five ResNet18, which know nothing of the 15 % of the patients that are held out
    candidates   stream networks within a budget, by SGD and by Muon, two seeds each, from kept views of all teachers;
                 the highest mean MCC on the held-out patients wins, however small its lead
    final        five ResNet18 beside which 5 % of the patients are held out, enough to fit a temperature, and from
                 kept views of them five seeds of the winner; of more seeds, every five teach the same five
    judge        all of them on the test images: means and spreads, and their difference by a bootstrap over patients;
                 not inferior where the lower end of the middle 95 % is above -1 point; answers.npz keeps the logits,
                 and `--beside` judges those of other calls with them

    python -m reproduction.diagnosis teachers candidates final judge xrays-128 -o runs/diagnosis --jobs 5

Each call goes on where the one before was stopped, as far as `--minutes` allow. `--jobs` trainings at a time share the
device, each in a process of its own (on a GPU: under MPS). `docs/diagnosis.md` is the tutorial.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import sphynx
from reproduction import STARTED, judging
from reproduction.tasks import Task, run_tasks
from sphynx.data.images import Data
from sphynx.run.settings import AUTO
from sphynx.run.work import pick_device
from sphynx.space.design import stem_for
from sphynx.space.reference import ResNet18Design
from sphynx.space.stream import StreamDesign, stages_from_text
from sphynx.space.stream_planner import plan_stream
from sphynx.space.tally import Shape
from sphynx.train.job import Job
from sphynx.train.loop import HELD_OUT_SEED, open_views
from sphynx.train.processes import Processes
from sphynx.train.recipe import load_recipe
from sphynx.train.results import RESULT, TrainResult, TrainSummary
from sphynx.train.views import VIEWS
from sphynx.zoo.teachers import add_teacher

STAGES = ("teachers", "candidates", "final", "judge")
TEACHER_RECIPE, STUDENT_RECIPE = "scans-teacher", "scans"
CANDIDATE_SEEDS, TEACHERS = 2, 5
BUDGET = 11_264
# More epochs than the recipe has, since with kept views no step runs the teachers.
TAUGHT = {"epochs": 240, "view_epochs": 60}
MUON = {"optimizer": "muon", "kernel_learning_rate": 0.02}
# Beside the plan's own: no ReLUs on the largest map, more of them on the smallest.
OTHER = "9x9/4 32:48: 16:96:20 8:128:48 4:192:96x2"


@dataclass(frozen=True)
class Round:
    """Teachers, and what learns from them."""

    teacher: str
    views: str
    held_out: float
    first_seed: int = 0  # of the teachers


CHOICE = Round("teacher", "views", 0.15)
WINNER, FINAL_TEACHER = "final", "teacher-final"


@dataclass(frozen=True)
class Candidate:
    design: StreamDesign
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the recipe


@dataclass(frozen=True)
class Plan:
    data: Data
    out: Path
    changed: Mapping[str, Any]  # settings, taught, width and budget, for a smoke test
    seeds: Sequence[int] = range(TEACHERS)  # of the final networks
    beside: Sequence[Path] = ()  # the answers of other calls
    students: int = TEACHERS  # that every five teachers have

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """In the order in which they are started."""
        found = self._taught(CHOICE)
        for name, candidate in self.candidates.items():
            for seed in range(CANDIDATE_SEEDS):
                found[f"{name}-seed-{seed}"] = self._student(CHOICE, name, candidate, seed, CHOICE.views)
        needs = tuple(name for name in found if name.startswith("candidate-"))
        found["choice"] = Task(self.choose, self.choice_file, needs, quick=True)
        for first in self.seeds[::TEACHERS]:
            final = Round(FINAL_TEACHER, f"views-{WINNER}-{first}", 0.05, first)
            found |= self._taught(final)
            for seed in range(first, first + self.students):
                found[f"{WINNER}-seed-{seed}"] = self._student(final, WINNER, None, seed, final.views, "choice")
        needs = tuple(name for name in found if name.startswith((WINNER, FINAL_TEACHER)))
        found["judgement"] = Task(self.judge, self.out / "judgement.json", needs)
        return found

    def names(self, stages: Sequence[str]) -> list[str]:
        """Which tasks belong to the stages."""
        names = list(self.tasks)
        views, choice = names.index(CHOICE.views), names.index("choice") + 1
        parts = dict(zip(STAGES, (names[:views], names[views:choice], names[choice:-1], names[-1:]), strict=True))
        return [name for stage in stages for name in parts[stage]]

    def _taught(self, of: Round) -> dict[str, Task]:
        seeds = range(of.first_seed, of.first_seed + TEACHERS)
        found = {f"{of.teacher}-seed-{seed}": self._resnet(of, seed) for seed in seeds}
        file = self.out / of.views / VIEWS
        return {**found, of.views: Task(partial(self.make_views, of, file), file, tuple(found))}

    def _resnet(self, of: Round, seed: int) -> Task:
        width, stem = int(self.changed.get("width", 64)), stem_for("auto", self.shape.height)
        design, out = ResNet18Design(width, self.shape, self.data.classes, stem), self.out / of.teacher / f"seed-{seed}"

        def train() -> None:
            settings = self.values(of)
            sphynx.train_network(
                design, self.data, out=out, recipe=TEACHER_RECIPE, settings=settings, seed=seed, resume=True
            )

        return Task(train, out / RESULT)

    def _student(self, of: Round, name: str, candidate: Candidate | None, seed: int, *needs: str) -> Task:
        """Without a candidate: the winner, once it is known."""
        out = self.out / name / f"seed-{seed}"

        def train() -> None:
            taken = candidate or self.candidates[json.loads(self.choice_file.read_text())["winner"]]
            sphynx.train_network(
                taken.design,
                self.data,
                out=out,
                recipe=STUDENT_RECIPE,
                settings=self.values(of, {**self.taught, **taken.settings}),
                teacher=self.teachers(of),
                views=self.out / of.views / VIEWS,
                seed=seed,
                resume=True,
            )

        return Task(train, out / RESULT, needs)

    def make_views(self, of: Round, file: Path) -> None:
        recipe = load_recipe(STUDENT_RECIPE, self.values(of, self.taught))
        design = next(iter(self.candidates.values())).design
        job = Job(design, self.data, recipe, file.parent, views=file, processes=Processes(pick_device(AUTO)))
        images, _ = self.data.train.split(recipe.held_out, HELD_OUT_SEED)
        open_views(add_teacher(job, self.teachers(of)), images)

    def teachers(self, of: Round) -> list[Path]:
        return self.runs(of.teacher, range(of.first_seed, of.first_seed + TEACHERS))

    def values(self, of: Round, settings: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return {"held_out": of.held_out, "calibrate": True, **(settings or {}), **self.changed.get("settings", {})}

    @property
    def taught(self) -> dict[str, Any]:
        return {**TAUGHT, **self.changed.get("taught", {})}

    @property
    def shape(self) -> Shape:
        return Shape(*self.data.image)

    @property
    def choice_file(self) -> Path:
        return self.out / "choice.json"

    @cached_property
    def candidates(self) -> dict[str, Candidate]:
        """The planner's own, and another where its maps fit the image; each by SGD and by Muon."""
        budget = int(self.changed.get("budget", BUDGET))
        designs = [plan_stream(budget, 0.05, self.shape, self.data.classes).design]
        if self.shape.height == 128:
            stages, stem = stages_from_text(OTHER, self.shape)
            designs.append(StreamDesign(stages, self.shape, self.data.classes, stem.stride, stem_kernel=stem.kernel))
        offered = [Candidate(design, settings) for settings in ({}, MUON) for design in designs]
        return {f"candidate-{number}": one for number, one in enumerate(offered)}

    def choose(self) -> None:
        """One that has not all its seeds does not count."""
        mean = {}
        for name in self.candidates:
            files = [self.out / name / f"seed-{seed}" / RESULT for seed in range(CANDIDATE_SEEDS)]
            if all(file.is_file() for file in files):
                mean[name] = statistics.fmean(read(file).held_out_mcc or 0.0 for file in files)
        if mean:
            winner = max(mean, key=lambda name: mean[name])
            taken = self.candidates[winner]
            chosen = {"winner": winner, "held_out_mcc": mean, "settings": dict(taken.settings)}
            write(self.choice_file, {**chosen, "design": taken.design.to_json()})

    def keep_answers(self) -> None:
        """Keep those of the first teachers and their students alone."""
        seeds = {WINNER: self.seeds[: self.students], FINAL_TEACHER: self.seeds[:TEACHERS]}
        runs = {name: self.runs(name, of_name) for name, of_name in seeds.items()}
        judging.keep_answers(self.out / judging.ANSWERS, runs, self.data, self.seeds)

    def judge(self) -> None:
        runs = {name: self.runs(name, self.seeds) for name in (WINNER, FINAL_TEACHER)}
        for name in runs:
            results = tuple(read(run / RESULT) for run in runs[name])
            # The result of all seeds, in the folder above theirs: a model's card names them.
            write(self.out / name / RESULT, TrainSummary(results).to_json())
        answers = self.out / judging.ANSWERS
        judging.keep_answers(answers, runs, self.data, self.seeds)
        judgement = judging.judge(judging.read_answers([*self.beside, answers]), WINNER, FINAL_TEACHER)
        write(self.out / "judgement.json", judgement)

    def runs(self, name: str, seeds: Sequence[int]) -> list[Path]:
        return [self.out / name / f"seed-{seed}" for seed in seeds]


def read(file: Path) -> TrainResult:
    return TrainResult.from_json(json.loads(file.read_text()), where=str(file))


def write(file: Path, content: Mapping[str, Any]) -> None:
    part = file.with_name(file.name + ".new")
    part.write_text(json.dumps(content, indent=2) + "\n")
    part.replace(file)


def main(words: Sequence[str] | None = None, began: float | None = None) -> int:
    """Return 3 where the time was over, or a training failed, before the stages were done."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.diagnosis", description=__doc__.splitlines()[0])
    parser.add_argument("stages", choices=STAGES, nargs="+")
    parser.add_argument("data", help="packed X-rays, or a folder with `--groups`")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=600.0, help="of this call; what runs then is saved")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--seeds", type=int, default=TEACHERS, help="of the final networks: 5, 10, 15 ...")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them")
    parser.add_argument("--beside", type=Path, nargs="*", default=[], help="answers.npz of other calls, to judge with")
    parser.add_argument("--groups", help="the rule that tells patients, for a folder")
    parser.add_argument("--image-size", type=int)
    parser.add_argument("--changed", type=json.loads, default={}, help="settings, width and budget, to try it out")
    options = parser.parse_args(words)
    if options.seeds < 1 or options.seeds % TEACHERS:
        parser.error(f"--seeds: give a multiple of {TEACHERS}, since that many teach together")
    began = time.monotonic() if began is None else began
    data = sphynx.open_data(options.data, image_size=options.image_size, groups=options.groups)
    options.out.mkdir(parents=True, exist_ok=True)
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    plan = Plan(data, options.out, options.changed, seeds, options.beside)
    seconds = 60 * options.minutes - (time.monotonic() - began)
    names = plan.names(options.stages)
    done = run_tasks(plan.tasks, names, jobs=options.jobs, seconds=seconds, logs=plan.out / "logs")
    for file in (plan.choice_file, plan.out / "judgement.json"):
        print(file.read_text() if file.is_file() else f"{file.name} is not there yet")
    return 0 if done else 3


if __name__ == "__main__":
    raise SystemExit(main(began=STARTED))
