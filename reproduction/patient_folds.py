"""ResNet18 and the stream network that learns from it, on all patients of the training images: five folds.

    Beside each fold, five ResNet18 are trained on the four others, and from kept views of them three seeds of the
    chosen stream network, by the settings of `reproduction.diagnosis final`. Each fold is judged by networks that never
    saw its patients, and all folds together: 5,163 images, where the test set has 624.

    python -m reproduction.patient_folds xrays-128 -o runs/folds --jobs 5

writes judgement.json, answers.npz with all logits, and experiment.json, which results/diagnosis/ keeps. Each call goes
on where the one before was stopped; on another machine, from the folds that `--keep` packed, with `--state`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

import sphynx
from reproduction import STARTED, judging
from reproduction.diagnosis import FINAL_TEACHER, WINNER, Plan, read, write
from reproduction.gpu.state import pack_results, unpack
from reproduction.tasks import Task, run_tasks
from sphynx.data.images import Data, ImageSet, split_indices
from sphynx.train.results import RESULT

FOLDS, STUDENTS = 5, 3
FOLD_SEED = 2026
CHOSEN = "candidate-3"  # as the second experiment of docs/diagnosis.md chose
JUDGEMENT, EXPERIMENT = "judgement.json", "experiment.json"
COMMAND = "python -m reproduction.patient_folds xrays-128 -o runs/folds"


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
    jobs: int = 1

    @property
    def folds(self) -> dict[str, Path]:
        return {f"fold-{number}": self.out / f"fold-{number}" for number in range(FOLDS)}

    def tasks(self) -> dict[str, Task]:
        """List the tasks of every fold whose answers are not there, and the judgement of all."""
        found = dict[str, Task]()
        for data, (fold, folder) in zip(deal(self.data, FOLDS), self.folds.items(), strict=True):
            plan, answers = Plan(data, folder, self.changed, students=STUDENTS), folder / judging.ANSWERS
            names = [] if answers.is_file() else ["choice", *plan.names(["final"])]
            folder.mkdir(parents=True, exist_ok=True)
            write(plan.choice_file, {"winner": self.changed.get("chosen", CHOSEN)})
            for name in names:
                task = plan.tasks[name]
                needs = () if name == "choice" else tuple(f"{fold}-{need}" for need in task.needs)
                found[f"{fold}-{name}"] = replace(task, needs=needs)
            found[f"{fold}-answers"] = Task(plan.keep_answers, answers, tuple(f"{fold}-{name}" for name in names))
        return {
            **found,
            "judgement": Task(self.judge, self.out / JUDGEMENT, tuple(f"{fold}-answers" for fold in self.folds)),
        }

    def judge(self) -> None:
        joined = judging.join_images([folder / judging.ANSWERS for folder in self.folds.values()])
        judging.save(self.out / judging.ANSWERS, joined)
        judgement = judging.judge(joined, WINNER, FINAL_TEACHER)
        write(self.out / EXPERIMENT, {**self.describe(), "judgement": judgement})
        write(self.out / JUDGEMENT, judgement)

    def describe(self) -> dict[str, Any]:
        """Tell on what machine, how long and how well each fold's networks were trained."""
        runs = {
            name: [[read(file) for file in sorted(folder.glob(f"{name}/*/{RESULT}"))] for folder in self.folds.values()]
            for name in (WINNER, FINAL_TEACHER)
        }

        def of_folds(key: str) -> dict[str, list[list[Any]]]:
            return {name: [[getattr(one, key) for one in fold] for fold in folds] for name, folds in runs.items()}

        environment = json.loads(next(self.out.glob(f"fold-*/{WINNER}/*/environment.json")).read_text())
        return {
            **{key: environment[key] for key in ("commit", "device")},
            "command": f"{COMMAND} --jobs {self.jobs}",
            "chosen": self.changed.get("chosen", CHOSEN),
            **{key: of_folds(key) for key in ("epochs", "minutes", "held_out_mcc", "accuracy")},
        }

    def keep(self, folder: Path) -> None:
        """Pack what is small of the folds that are finished: of others the weights would be missing elsewhere."""
        folds = [fold for fold, place in self.folds.items() if (place / judging.ANSWERS).is_file()]
        pack_results(self.out, folder, {JUDGEMENT, EXPERIMENT, judging.ANSWERS, "logs", *folds})


def main(words: Sequence[str] | None = None, began: float | None = None) -> int:
    """Return 3 where the time was over before all was judged."""
    began = time.monotonic() if began is None else began
    parser = argparse.ArgumentParser(prog="python -m reproduction.patient_folds", description=__doc__.splitlines()[0])
    parser.add_argument("data", help="packed X-rays, or a folder with `--groups`")
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=600.0, help="of this call; what runs then is saved")
    parser.add_argument("--jobs", type=int, default=1, help="trainings at a time")
    parser.add_argument("--keep", type=Path, help="pack finished folds here, without weights")
    parser.add_argument("--state", type=Path, help="what --keep packed on another machine: goes on from there")
    parser.add_argument("--groups", help="the rule that tells patients, for a folder")
    parser.add_argument("--image-size", type=int)
    parser.add_argument("--changed", type=json.loads, default={}, help="settings, width and budget, to try it out")
    options = parser.parse_args(words)
    data = sphynx.open_data(options.data, image_size=options.image_size, groups=options.groups)
    if options.state is not None:
        unpack(options.state, options.out)
    experiment = Experiment(data, options.out, options.changed, options.jobs)
    tasks, keep = experiment.tasks(), partial(experiment.keep, options.keep) if options.keep else None
    seconds = 60 * options.minutes - (time.monotonic() - began)
    done = run_tasks(tasks, list(tasks), jobs=options.jobs, seconds=seconds, logs=options.out / "logs", keep=keep)
    if keep is not None:
        keep()  # what earlier calls finished, too, where nothing ended in this one
    file = options.out / JUDGEMENT
    print(file.read_text() if file.is_file() else f"{file.name} is not there yet")
    return 0 if done else 3


if __name__ == "__main__":
    raise SystemExit(main(began=STARTED))
