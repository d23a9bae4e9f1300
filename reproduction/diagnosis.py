"""A network for chest X-rays, chosen on patients that are held out, then judged on the test images beside ResNet18.

    teachers     five ResNet18, from all of which the networks below learn; they know nothing of the held-out patients
    candidates   stream networks within a budget, two seeds each; the highest mean MCC on the held-out patients wins
    final        five seeds of the winner
    judge        both on the test images: means and spreads, and their difference by a bootstrap over patients

    python -m reproduction.diagnosis candidates xrays-128 -o runs/diagnosis --minutes 9 --jobs 3

Each stage goes on where it was stopped. `--jobs` trainings at a time share the device, each in a process of its own
(on a GPU: under MPS). `docs/diagnosis.md` is the tutorial.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import sphynx
from sphynx.data.images import Data
from sphynx.space.design import stem_for
from sphynx.space.reference import ResNet18Design
from sphynx.space.stream import StreamDesign, stages_from_text
from sphynx.space.stream_planner import plan_stream
from sphynx.space.tally import Shape
from sphynx.train.evaluate import Answers
from sphynx.train.results import RESULT, TrainResult, TrainSummary

HELD_OUT = 0.15
CANDIDATE_SEEDS, FINAL_SEEDS = 2, 5
BUDGET = 11_264
MARGIN = 0.01  # of accuracy, that the winner may lack to be called not inferior
RESAMPLES = 10_000
TEACHER = "teacher"
TEACHER_RECIPE, STUDENT_RECIPE = "scans-teacher", "scans"
# Beside the plan's own: more ReLUs on the larger maps, and none on the largest.
OTHERS = ("9x9/4 32:48:6 16:96:10 8:128:24 4:192:32x2", "9x9/4 32:48: 16:96:20 8:128:48 4:192:96x2")
# The plan's own, taught as `frontier` does: by the teachers far more than by labels, on strongly mixed images. At the
# recipe's own rate the loss, eight times larger, diverges in the third epoch.
STRONGLY_TAUGHT = {"mixup": 1.0, "cutmix": 0.5, "distillation_weight": 6.25, "learning_rate": 0.03, "grad_clip": 5.0}


@dataclass(frozen=True)
class Candidate:
    design: StreamDesign
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the recipe


@dataclass(frozen=True)
class Work:
    data: Data
    out: Path
    ends: float  # in seconds of `time.monotonic`: no training begins later
    jobs: int
    changed: Mapping[str, Any]  # values of the recipes, for a smoke test

    @property
    def shape(self) -> Shape:
        return Shape(*self.data.image)

    def resnet(self) -> ResNet18Design:
        width, stem = int(self.changed.get("width", 64)), stem_for("auto", self.shape.height)
        return ResNet18Design(width, self.shape, self.data.classes, stem)

    def train_teachers(self) -> bool:
        return self._train_all([partial(self._train, self.resnet(), TEACHER, seed) for seed in range(FINAL_SEEDS)])

    def train_students(self, candidates: Mapping[str, Candidate], seeds: int) -> bool:
        teachers = [self.folder(TEACHER, seed) for seed in range(FINAL_SEEDS)]
        trainings = [
            partial(self._train, one.design, name, seed, settings=one.settings, teachers=teachers)
            for seed in range(seeds)
            for name, one in candidates.items()
        ]
        return self._train_all(trainings)

    def _train_all(self, trainings: Sequence[partial[bool]]) -> bool:
        """Return whether all runs are finished, now or before; the time may be over."""
        if self.jobs == 1:
            return all(training() for training in trainings)
        # Forked: torch and the data are there already, and CUDA has not been touched.
        fork, waiting, running, codes = multiprocessing.get_context("fork"), list(trainings), list[ForkProcess](), []
        while waiting or running:
            while waiting and len(running) < self.jobs:
                running.append(fork.Process(target=_exit_with, args=(waiting.pop(0),)))
                running[-1].start()
            wait([process.sentinel for process in running])
            for process in [one for one in running if not one.is_alive()]:
                running.remove(process)
                codes.append(process.exitcode)
        return not any(codes)

    def _train(
        self,
        design: ResNet18Design | StreamDesign,
        name: str,
        seed: int,
        *,
        settings: Mapping[str, Any] | None = None,
        teachers: Sequence[Path] | None = None,
    ) -> bool:
        out = self.folder(name, seed)
        if not (out / RESULT).is_file():
            if time.monotonic() > self.ends:
                print(f"left for the next call: {out}")
                return False
            values = {"held_out": HELD_OUT, "calibrate": True, **(settings or {}), **self.changed.get("settings", {})}
            recipe = STUDENT_RECIPE if teachers else TEACHER_RECIPE
            started = time.monotonic()
            sphynx.train_network(
                design, self.data, out=out, recipe=recipe, settings=values, teacher=teachers, seed=seed, resume=True
            )
            print(f"{out}: {time.monotonic() - started:.0f} s", flush=True)
        return True

    def folder(self, name: str, seed: int) -> Path:
        return self.out / name / f"seed-{seed}"

    def results(self, name: str, seeds: int) -> list[TrainResult]:
        files = (self.folder(name, seed) / RESULT for seed in range(seeds))
        return [TrainResult.from_json(json.loads(file.read_text()), where=str(file)) for file in files]


def _exit_with(training: partial[bool]) -> None:
    torch.set_num_threads(1)  # the threads of OpenMP did not come along, and are waited for where there should be some
    sys.exit(0 if training() else 1)


def teachers(work: Work) -> bool:
    return work.train_teachers() and _summarise(work, TEACHER)


def candidates(work: Work) -> bool:
    offered = candidate_networks(work)
    if not work.train_students(offered, CANDIDATE_SEEDS):
        return False
    mean = {
        name: statistics.fmean(one.held_out_mcc or 0.0 for one in work.results(name, CANDIDATE_SEEDS))
        for name in offered
    }
    winner = max(mean, key=lambda name: mean[name])
    chosen = {"winner": winner, "held_out_mcc": mean, "design": offered[winner].design.to_json()}
    (work.out / "choice.json").write_text(json.dumps(chosen, indent=2) + "\n")
    print(json.dumps(mean, indent=2), f"\nchosen: {winner}, {offered[winner].design}")
    return True


def candidate_networks(work: Work) -> dict[str, Candidate]:
    """The planner's own, others of the same image where their maps fit it, and the planner's own taught otherwise."""
    budget = int(work.changed.get("budget", BUDGET))
    planned = plan_stream(budget, 0.05, work.shape, work.data.classes).design
    designs = [planned]
    for text in OTHERS if work.shape.height == 128 else ():
        stages, stem = stages_from_text(text, work.shape)
        designs.append(StreamDesign(stages, work.shape, work.data.classes, stem.stride, stem_kernel=stem.kernel))
    found = {f"candidate-{number}": Candidate(design) for number, design in enumerate(designs)}
    return {**found, f"candidate-{len(designs)}": Candidate(planned, STRONGLY_TAUGHT)}


def final(work: Work) -> bool:
    """The first seeds are those of the candidates: trained alike, they are not trained again."""
    name = json.loads((work.out / "choice.json").read_text())["winner"]
    winner = {name: candidate_networks(work)[name]}
    return work.train_students(winner, FINAL_SEEDS) and _summarise(work, name)


def _summarise(work: Work, name: str) -> bool:
    """Write the result of all seeds: a model's card names them."""
    summary = TrainSummary(tuple(work.results(name, FINAL_SEEDS)))
    (work.out / name / RESULT).write_text(json.dumps(summary.to_json(), indent=2) + "\n")
    return True


def judge(work: Work) -> bool:
    name = json.loads((work.out / "choice.json").read_text())["winner"]
    right = {kind: rights(work, kind) for kind in (name, TEACHER)}
    groups = work.data.test.groups
    of_image = np.arange(len(work.data.test)) if groups is None else groups.numpy()
    difference = right[name].mean(0) - right[TEACHER].mean(0)
    low, high = bootstrap(difference, of_image)
    report = {
        "difference": float(difference.mean()),
        "low": low,
        "high": high,
        "not_inferior": low > -MARGIN,
        **{kind: _spread(work.results(kind, FINAL_SEEDS)) for kind in right},
    }
    (work.out / "judgement.json").write_text(json.dumps(report, indent=2) + "\n")
    print(json.dumps(report, indent=2))
    return True


def rights(work: Work, name: str) -> NDArray[np.float64]:
    """[seed, image]: 1 where the answer is right."""
    rows = []
    for seed in range(FINAL_SEEDS):
        answers = Answers()
        sphynx.evaluate_network(work.folder(name, seed), work.data, seen=answers.add)
        logits, labels = answers.arrays
        rows.append((logits.argmax(1) == labels).astype(np.float64))
    return np.stack(rows)


def bootstrap(difference: NDArray[np.float64], groups: NDArray[np.int64]) -> tuple[float, float]:
    """The middle 95 % of the mean over images when whole groups are drawn again."""
    _, of_image = np.unique(groups, return_inverse=True)
    sums, sizes = np.bincount(of_image, difference), np.bincount(of_image)
    drawn = np.random.default_rng(0).integers(0, len(sizes), (RESAMPLES, len(sizes)))
    low, high = np.quantile(sums[drawn].sum(1) / sizes[drawn].sum(1), [0.025, 0.975]).tolist()
    return low, high


def _spread(results: Sequence[TrainResult]) -> dict[str, Any]:
    return {
        key: {"mean": statistics.fmean(values), "std": statistics.stdev(values), "of_seeds": values}
        for key in ("accuracy", "balanced_accuracy", "mcc")
        for values in [[float(getattr(one, key)) for one in results]]
    }


STAGES = {"teachers": teachers, "candidates": candidates, "final": final, "judge": judge}


def main(words: Sequence[str] | None = None) -> int:
    """Return 3 where the time was over before the stage was done."""
    parser = argparse.ArgumentParser(prog="python -m reproduction.diagnosis", description=__doc__.splitlines()[0])
    parser.add_argument("stage", choices=STAGES)
    parser.add_argument("data", help="packed X-rays, or a folder with `--groups`")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=60.0, help="no training begins after this many")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--groups", help="the rule that tells patients, for a folder")
    parser.add_argument("--image-size", type=int)
    parser.add_argument(
        "--changed", type=json.loads, default={}, help="settings, width and budget, to try it out small"
    )
    options = parser.parse_args(words)
    data = sphynx.open_data(options.data, image_size=options.image_size, groups=options.groups)
    options.out.mkdir(parents=True, exist_ok=True)
    work = Work(data, options.out, time.monotonic() + 60 * options.minutes, options.jobs, options.changed)
    return 0 if STAGES[options.stage](work) else 3


if __name__ == "__main__":
    raise SystemExit(main())
