"""ResNet18 and the stream network that learns from it, on all patients of the training images: five folds.

    Beside each fold, five ResNet18 are trained on the four others, and from kept views of them three seeds of the
    chosen stream network, by the settings of `reproduction.diagnosis final`. Each fold is judged by networks that never
    saw its patients, and all folds together: 5,163 images, where the test set has 624.

    python -m reproduction.patient_folds xrays-128 -o runs/folds --jobs 5

writes judgement.json, and answers.npz with all logits. Each call goes on where the one before was stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import sphynx
from reproduction import judging
from reproduction.diagnosis import FINAL_TEACHER, WINNER, Plan, write
from reproduction.tasks import Task, run_tasks
from sphynx.data.images import Data, ImageSet, split_indices

FOLDS, STUDENTS = 5, 3
FOLD_SEED = 2026
CHOSEN = "candidate-3"  # as the second experiment of docs/diagnosis.md chose
JUDGEMENT = "judgement.json"


def deal(data: Data, folds: int) -> list[Data]:
    """For each fold the data whose test images are that fold; the test set itself is left out."""
    whole = data.train
    left, parts = torch.arange(len(whole)), []
    for number in range(folds, 1, -1):
        groups = None if whole.groups is None else whole.groups[left]
        rest, part = split_indices(whole.labels[left], groups, 1 / number, FOLD_SEED)
        parts.append(left[part])
        left = left[rest]
    parts.append(left)
    return [_beside(data, whole, part) for part in parts]


def _beside(data: Data, whole: ImageSet, part: torch.Tensor) -> Data:
    others = torch.ones(len(whole), dtype=torch.bool)
    others[part] = False
    train = whole.subset(others.nonzero().flatten())
    mean, std = train.statistics()
    return replace(data, train=train, test=whole.subset(part), mean=mean, std=std)


@dataclass(frozen=True)
class Experiment:
    data: Data
    out: Path
    changed: dict[str, Any] = field(default_factory=dict)  # to try it out

    def tasks(self) -> dict[str, Task]:
        found, kept = dict[str, Task](), list[Path]()
        for number, data in enumerate(deal(self.data, FOLDS)):
            plan = Plan(data, self.out / f"fold-{number}", self.changed, students=STUDENTS)
            plan.out.mkdir(parents=True, exist_ok=True)
            write(plan.choice_file, {"winner": self.changed.get("chosen", CHOSEN)})
            prefix = f"fold-{number}-"
            names = ["choice", *plan.names(["final"])]
            for name in names:
                task = plan.tasks[name]
                needs = () if name == "choice" else tuple(prefix + need for need in task.needs)
                found[prefix + name] = replace(task, needs=needs)
            kept.append(plan.out / judging.ANSWERS)
            found[prefix + "answers"] = Task(plan.keep_answers, kept[-1], tuple(prefix + name for name in names))

        def judge() -> None:
            joined = judging.join_images(kept)
            np.savez_compressed(self.out / judging.ANSWERS, allow_pickle=False, **joined)
            write(self.out / JUDGEMENT, judging.judge(joined, WINNER, FINAL_TEACHER))

        answers = tuple(name for name in found if name.endswith("-answers"))
        return {**found, "judgement": Task(judge, self.out / JUDGEMENT, answers)}


def main(words: Sequence[str] | None = None) -> int:
    """Return 3 where the time was over before all was judged."""
    began = time.monotonic()
    parser = argparse.ArgumentParser(prog="python -m reproduction.patient_folds", description=__doc__.splitlines()[0])
    parser.add_argument("data", help="packed X-rays, or a folder with `--groups`")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=600.0, help="of this call; what runs then is saved")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--groups", help="the rule that tells patients, for a folder")
    parser.add_argument("--image-size", type=int)
    parser.add_argument("--changed", type=json.loads, default={}, help="settings, width and budget, to try it out")
    options = parser.parse_args(words)
    data = sphynx.open_data(options.data, image_size=options.image_size, groups=options.groups)
    tasks = Experiment(data, options.out, options.changed).tasks()
    seconds = 60 * options.minutes - (time.monotonic() - began)
    done = run_tasks(tasks, list(tasks), jobs=options.jobs, seconds=seconds, logs=options.out / "logs")
    file = options.out / JUDGEMENT
    print(file.read_text() if file.is_file() else f"{file.name} is not there yet")
    return 0 if done else 3


if __name__ == "__main__":
    raise SystemExit(main())
