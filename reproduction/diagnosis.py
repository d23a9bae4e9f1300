"""A network for chest X-rays, chosen on patients that are held out, then judged on the test images beside ResNet18.

    teachers     two ResNet18, which the networks below learn from; they know nothing of the held-out patients
    candidates   stream networks within a budget, two seeds each; the highest mean MCC on the held-out patients wins
    final        five seeds of the winner and of ResNet18, trained alike
    judge        both on the test images: means and spreads, and their difference by a bootstrap over patients

    python -m reproduction.diagnosis candidates xrays-128 -o runs/diagnosis --minutes 9

Each stage goes on where it was stopped. `docs/diagnosis.md` is the tutorial.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
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
TEACHERS, CANDIDATE_SEEDS, FINAL_SEEDS = 2, 2, 5
BUDGET = 11_264
MARGIN = 0.01  # of accuracy, that the winner may lack to be called not inferior
RESAMPLES = 10_000
TEACHER = "teacher"
TEACHER_RECIPE, STUDENT_RECIPE = "scans-teacher", "scans"
# Beside the plan's own: more ReLUs on the larger maps, and none on the largest.
OTHERS = ("9x9/4 32:48:6 16:96:10 8:128:24 4:192:32x2", "9x9/4 32:48: 16:96:20 8:128:48 4:192:96x2")


@dataclass(frozen=True)
class Work:
    data: Data
    out: Path
    ends: float  # in seconds of `time.monotonic`: no training begins later
    changed: Mapping[str, Any]  # values of the recipes, for a smoke test

    @property
    def shape(self) -> Shape:
        return Shape(*self.data.image)

    def resnet(self) -> ResNet18Design:
        width, stem = int(self.changed.get("width", 64)), stem_for("auto", self.shape.height)
        return ResNet18Design(width, self.shape, self.data.classes, stem)

    def train(self, design: ResNet18Design | StreamDesign, name: str, seed: int) -> bool:
        """Return whether the run is finished, now or before; the time may be over."""
        out = self.folder(name, seed)
        if not (out / RESULT).is_file():
            if time.monotonic() > self.ends:
                print(f"left for the next call: {out}")
                return False
            student = isinstance(design, StreamDesign)
            teachers = [self.folder(TEACHER, number) for number in range(TEACHERS)] if student else None
            values = {"held_out": HELD_OUT, "calibrate": True, **self.changed.get("settings", {})}
            recipe = STUDENT_RECIPE if student else TEACHER_RECIPE
            started = time.monotonic()
            sphynx.train_network(
                design, self.data, out=out, recipe=recipe, settings=values, teacher=teachers, seed=seed, resume=True
            )
            print(f"{out}: {time.monotonic() - started:.0f} s")
        return True

    def folder(self, name: str, seed: int) -> Path:
        return self.out / name / f"seed-{seed}"

    def results(self, name: str, seeds: int) -> list[TrainResult]:
        files = (self.folder(name, seed) / RESULT for seed in range(seeds))
        return [TrainResult.from_json(json.loads(file.read_text()), where=str(file)) for file in files]


def teachers(work: Work) -> bool:
    return all(work.train(work.resnet(), TEACHER, seed) for seed in range(TEACHERS))


def candidates(work: Work) -> bool:
    designs = candidate_designs(work)
    done = [work.train(designs[name], name, seed) for seed in range(CANDIDATE_SEEDS) for name in designs]
    if not all(done):
        return False
    mean = {
        name: statistics.fmean(one.held_out_mcc or 0.0 for one in work.results(name, CANDIDATE_SEEDS))
        for name in designs
    }
    winner = max(mean, key=lambda name: mean[name])
    chosen = {"winner": winner, "held_out_mcc": mean, "design": designs[winner].to_json()}
    (work.out / "choice.json").write_text(json.dumps(chosen, indent=2) + "\n")
    print(json.dumps(mean, indent=2), f"\nchosen: {winner}, {designs[winner]}")
    return True


def candidate_designs(work: Work) -> dict[str, StreamDesign]:
    """The planner's own, and others of the same image where their maps fit it."""
    budget = int(work.changed.get("budget", BUDGET))
    designs = [plan_stream(budget, 0.05, work.shape, work.data.classes).design]
    for text in OTHERS if work.shape.height == 128 else ():
        stages, stem = stages_from_text(text, work.shape)
        designs.append(StreamDesign(stages, work.shape, work.data.classes, stem.stride, stem_kernel=stem.kernel))
    return {f"candidate-{number}": design for number, design in enumerate(designs)}


def final(work: Work) -> bool:
    """The first seeds are those of the stages before: trained alike, they are not trained again."""
    chosen = json.loads((work.out / "choice.json").read_text())
    design, name = StreamDesign.from_json(chosen["design"]), chosen["winner"]
    done = [work.train(design, name, seed) for seed in range(FINAL_SEEDS)]
    if not all([*done, *(work.train(work.resnet(), TEACHER, seed) for seed in range(FINAL_SEEDS))]):
        return False
    for kind in (name, TEACHER):  # a model's card names all seeds
        summary = TrainSummary(tuple(work.results(kind, FINAL_SEEDS)))
        (work.out / kind / RESULT).write_text(json.dumps(summary.to_json(), indent=2) + "\n")
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
    parser.add_argument("--groups", help="the rule that tells patients, for a folder")
    parser.add_argument("--image-size", type=int)
    parser.add_argument(
        "--changed", type=json.loads, default={}, help="settings, width and budget, to try it out small"
    )
    options = parser.parse_args(words)
    data = sphynx.open_data(options.data, image_size=options.image_size, groups=options.groups)
    options.out.mkdir(parents=True, exist_ok=True)
    work = Work(data, options.out, time.monotonic() + 60 * options.minutes, options.changed)
    return 0 if STAGES[options.stage](work) else 3


if __name__ == "__main__":
    raise SystemExit(main())
