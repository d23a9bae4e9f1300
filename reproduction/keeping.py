"""A run folder as one file under results/, from which docs/results/paper.md is written.

    results/paper/NAME.json       a training      name, result, environment, config, metrics
    results/search/NAME.json      a cell search   the same with genotype and last strengths; it may be unfinished
    results/placement/NAME.json   a placement     the same with beta.json

Weights are left out, and so are the command and where the data lay: paths of one machine say nothing elsewhere.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from reproduction.kept_searches import count_convolutions
from sphynx.data.source import KEY as DATA_SOURCE
from sphynx.errors import InputError
from sphynx.run.folder import RunFolder
from sphynx.space.genotype import Genotype
from sphynx.train.results import RESULT

TRAININGS, SEARCHES, PLACEMENTS = "paper", "search", "placement"
FINISHED = (RESULT, "beta.json")
COMMAND = "command"  # of environment.json


def keep(run: Path, results: Path, name: str = "") -> Path:
    """The file that it wrote. `name` is the folder's where none is given."""
    if not (run / "config.json").is_file():
        raise InputError("there is no run in this folder", where=str(run), remedy="Give the folder of one run.")
    folder = RunFolder(run)
    rows, (config, environment) = folder.read_metrics(), _read_settings(folder)
    stage = config.get("stage", "train")
    kept: dict[str, Any] = {"name": name or run.name, "environment": environment}
    if stage == "search":
        kept |= _keep_search(config, rows, run)
    elif stage == "place":
        kept |= {"config": config, "beta": folder.read_json("beta.json"), "metrics": [_plain(row) for row in rows]}
    else:
        kept |= read_training(run)
    kind = {"search": SEARCHES, "place": PLACEMENTS}.get(stage, TRAININGS)
    file = results / kind / f"{kept['name']}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(kept, indent=1) + "\n")
    return file


def read_training(run: Path) -> dict[str, Any]:
    """A finished training, without its weights."""
    folder = RunFolder(run)
    config, environment = _read_settings(folder)
    metrics = [_plain(row) for row in folder.read_metrics()]
    return {"environment": environment, "result": folder.read_json(RESULT), "config": config, "metrics": metrics}


def _read_settings(folder: RunFolder) -> tuple[dict[str, Any], dict[str, Any]]:
    """A run's configuration and environment, without paths of its machine."""
    config = {key: value for key, value in folder.read_json("config.json").items() if key != DATA_SOURCE}
    return config, {key: value for key, value in folder.read_json("environment.json").items() if key != COMMAND}


def runs_below(path: Path) -> list[Path]:
    """The folder itself where it is a run, else the runs in it that have something to keep."""
    if (path / "config.json").is_file():
        return [path]
    return [
        folder
        for folder in sorted(path.iterdir())
        if (folder / "config.json").is_file() and any((folder / name).is_file() for name in FINISHED)
    ]


def _keep_search(config: dict[str, Any], rows: list[dict[str, Any]], run: Path) -> dict[str, Any]:
    """The cells that the recipe's rule takes of the epochs that ran."""
    if not rows:
        raise InputError("no epoch of the search is finished", where=str(run), remedy="Let it run on.")
    best = config["recipe"].get("epoch") == "best"
    chosen = max(rows, key=lambda row: float(row["held_out"])) if best else rows[-1]
    return {
        "config": config,
        "genotype": chosen["genotype"],
        "chosen_epoch": chosen["epoch"],
        "strengths": rows[-1]["strengths"],
        "metrics": [_plain(row) | {"convolutions": _convolutions(row)} for row in rows],
    }


def _convolutions(row: dict[str, Any]) -> list[int]:
    genotype = Genotype.from_json(row["genotype"])
    return [count_convolutions(genotype.normal), count_convolutions(genotype.reduce)]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """One epoch in one line: numbers and words, rounded to what a reader needs."""
    return {
        key: round(value, 5) if isinstance(value, float) else value
        for key, value in row.items()
        if not isinstance(value, dict | list)
    }
