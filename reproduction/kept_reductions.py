"""Reductions of one teacher as files under results/reduction, from which docs/results/reduce.md is written.

    results/reduction/teacher.json         the original: result, configuration, environment, metrics
    results/reduction/METHOD-BUDGET-...    a reduction: what was asked for, its counts and accuracies, and for each
                                           method that it tried the training's result and configuration
    results/reduction/calls.jsonl          how long each call took, with all that ran beside each other
    results/reduction/latency.json         what each takes privately (`reproduction.reduced_latency`)

Weights are left out, and so are paths and masks by value, which are as large as weights: `design` in a result is the
fingerprint of the network with its masks.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from reproduction.keeping import read_training
from sphynx.record import Record
from sphynx.reduce.results import REDUCTION, Reduced, ReduceResult
from sphynx.space.files import any_design_from_json
from sphynx.space.reduced import ReducedDesign
from sphynx.train.results import RESULT, TrainResult

FOLDER, LATENCY = "reduction", "latency.json"
TEACHER, ASKED = "teacher", "asked.json"
CALLS = "calls.jsonl"  # of `reproduction.reduction`, with their minutes


@dataclass(frozen=True)
class Asked(Record):
    """The point of a reduction and its settings. `minutes` are of all calls, beside up to `jobs` - 1 others."""

    method: str
    relu_budget: str
    seed: int
    epochs: int
    recipe: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    minutes: float = 0.0
    jobs: int = 1


@dataclass(frozen=True)
class KeptReduction(Record):
    name: str
    asked: Asked
    reduction: ReduceResult
    environment: dict[str, Any]
    trained: dict[str, Any]  # by method: the training's result and config

    @property
    def tried(self) -> tuple[Reduced, ...]:
        return self.reduction.tried

    def epochs(self, one: Reduced) -> int:
        return int(self.trained[one.method]["result"]["epochs"])

    def is_kept(self, one: Reduced) -> bool:
        return len(self.tried) > 1 and one.method == self.reduction.best.method


@dataclass(frozen=True)
class KeptTeacher(Record):
    name: str
    result: TrainResult
    environment: dict[str, Any]


def holds_reductions(runs: Path) -> bool:
    return (runs / TEACHER / RESULT).is_file() and any(runs.glob(f"*/{REDUCTION}"))


def keep_reductions(runs: Path, results: Path) -> list[Path]:
    """Keep the teacher, and every reduction that is finished; return the files."""
    finished = [file.parent for file in sorted(runs.glob(f"*/{REDUCTION}"))]
    kept = [{"name": TEACHER, **read_training(runs / TEACHER)}, *map(_kept, finished)]
    folder = results / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    if (runs / CALLS).is_file():
        shutil.copyfile(runs / CALLS, folder / CALLS)
    return [_write(folder / f"{one['name']}.json", one) for one in kept]


def read_teacher(results: Path) -> KeptTeacher | None:
    file = results / FOLDER / f"{TEACHER}.json"
    return KeptTeacher.from_json(json.loads(file.read_text()), file.name) if file.is_file() else None


def read_calls(results: Path) -> list[dict[str, Any]]:
    file = results / FOLDER / CALLS
    return [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []


def read_reductions(results: Path) -> list[KeptReduction]:
    files = sorted((results / FOLDER).glob("*-*.json"))
    return [KeptReduction.from_json(json.loads(file.read_text()), file.name) for file in files]


def tried_folders(run: Path, reduction: ReduceResult) -> dict[str, Path]:
    """The run folder of each method that a reduction tried: of the one that was kept the reduction's own."""
    best = reduction.best.method
    return {one.method: run if one.method == best else run / one.method / "run" for one in reduction.tried}


def _kept(run: Path) -> dict[str, Any]:
    reduction = json.loads((run / REDUCTION).read_text())
    tried = tried_folders(run, ReduceResult.from_json(reduction, where=str(run / REDUCTION)))
    trainings = {method: read_training(folder) for method, folder in tried.items()}
    first = next(iter(trainings.values()))
    return {
        "name": run.name,
        "asked": json.loads((run / ASKED).read_text()),
        "reduction": reduction,
        "environment": first["environment"],
        "trained": {
            method: {"result": one["result"], "config": _without_masks(one["config"])}
            for method, one in trainings.items()
        },
    }


def _without_masks(config: dict[str, Any]) -> dict[str, Any]:
    design = any_design_from_json(config["design"])
    by_value = isinstance(design, ReducedDesign) and any(layer.is_per_value for layer in design.layers)
    return {key: value for key, value in config.items() if key != "design" or not by_value}


def _write(file: Path, content: dict[str, Any]) -> Path:
    file.write_text(json.dumps(content, indent=1) + "\n")
    return file
