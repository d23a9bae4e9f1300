"""A run folder as it grows: read again and again while another process writes it. Nothing in it is changed or locked.

A run writes a line of metrics after each epoch, with the epoch's seconds; a cell search with the cells it would choose
then, a placement search with the probability of each placement. Of a `sphynx design` all runs and stages are read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from sphynx.design.results import Schedule
from sphynx.errors import InputError
from sphynx.run.folder import METRICS
from sphynx.run.stages import STAGES
from sphynx.space.artifact import CONFIGURATION
from sphynx.space.cell import INPUT_NODES, Cell
from sphynx.space.genotype import Genotype

RESULTS = ("result.json", "beta.json", "allocation.json")  # a run that has one of them is finished
RECENT = 5  # epochs that the time of the next ones is guessed from
CURVES = ("loss", "train_accuracy", "held_out_accuracy", "test_accuracy", "held_out", "skips", "eigenvalue", "tau")


@dataclass(frozen=True)
class LiveRun:
    name: str
    stage: str  # train, search, place, allocate
    epochs: int  # that it will have
    rows: Sequence[Mapping[str, Any]]  # one for each that it has
    finished: bool
    news_s: float  # since it last wrote
    candidates: Sequence[str] = ()  # of a placement or an allocation, by name

    @property
    def seconds_left(self) -> float | None:
        """Seconds left by the last epochs, less what went by since the last one. None before the first."""
        recent = [float(row["seconds"]) for row in self.rows[-RECENT:] if "seconds" in row]
        if self.finished or not recent:
            return 0.0 if self.finished else None
        left = (self.epochs - len(self.rows)) * sum(recent) / len(recent)
        return max(0.0, left - self.news_s)

    def curves(self) -> dict[str, list[float]]:
        """Curves by name, a value for each epoch that has a finite one; names in a fixed order."""
        found = {name: [row[name] for row in self.rows if isinstance(row.get(name), int | float)] for name in CURVES}
        finite = {name: [float(value) for value in values if isfinite(value)] for name, values in found.items()}
        return {name: values for name, values in finite.items() if values}

    def cells(self) -> list[Genotype]:
        """The cells that a search would have chosen after each epoch."""
        return [Genotype.from_json(row["genotype"], where=self.name) for row in self.rows if "genotype" in row]

    def probabilities(self) -> dict[str, list[float]]:
        """Probabilities of each candidate after each epoch that has only finite ones, the likeliest first."""
        given = (list(map(float, row["beta_hat"])) for row in self.rows if isinstance(row.get("beta_hat"), list))
        beta = [probabilities for probabilities in given if all(map(isfinite, probabilities))]
        if not beta:
            return {}
        known = len(self.candidates) == len(beta[-1])
        names = self.candidates if known else [f"candidate {number}" for number in range(len(beta[-1]))]
        ranked = sorted(range(len(beta[-1])), key=lambda number: -beta[-1][number])
        return {names[number]: [row[number] for row in beta] for number in ranked}


@dataclass(frozen=True)
class Stage:
    """A stage of `sphynx design`."""

    name: str
    finished: bool
    seconds: float  # that it took, or is expected to take


@dataclass(frozen=True)
class Live:
    name: str
    runs: tuple[LiveRun, ...]  # those that wrote last come last
    stages: tuple[Stage, ...] = ()
    finished: bool = False

    @property
    def current(self) -> LiveRun:
        """The one that is running, else the last one."""
        running = [run for run in self.runs if not run.finished]
        return (running or list(self.runs))[-1]

    @property
    def seconds_left(self) -> float | None:
        """Seconds left of all stages; without stages, of the run that is running."""
        left = self.current.seconds_left
        waiting = [stage.seconds for stage in self.stages if not stage.finished]
        return left if left is None or not waiting else left + sum(waiting[1:])


def read_live(folder: Path, now_s: float | None = None) -> Live:
    now_s = time.time() if now_s is None else now_s
    runs = sorted(_runs(folder, now_s), key=lambda run: -run.news_s)
    if not runs:
        raise InputError(
            "there is no run in the folder yet",
            where=str(folder),
            remedy="Give the `out` folder of a training, search, placement or design.",
        )
    stages = _stages(folder / STAGES)
    whole = [folder / name for name in RESULTS if (folder / name).is_file()]
    finished = bool(whole) or (not stages and all(run.finished for run in runs))
    return Live(folder.resolve().name, tuple(runs), stages, finished)


def changes(cells: Sequence[Genotype]) -> Iterator[tuple[int, str, str]]:
    """Epoch (from 1), cell and what it reads now, for every node that changed; the latest first."""
    for epoch in range(len(cells), 1, -1):
        now, before = cells[epoch - 1], cells[epoch - 2]
        for which in ("normal", "reduce"):
            new, old = getattr(now, which), getattr(before, which)
            for number, (edges, earlier) in enumerate(zip(new, old, strict=False), INPUT_NODES):
                if set(edges) != set(earlier):
                    yield epoch, f"{which}, node {number}", f"{_write(earlier)} -> {_write(edges)}"


def cell_lines(cell: Cell) -> list[str]:
    """node 2: conv3 of 0 + skip of 1"""
    return [f"node {number}: {_write(edges)}" for number, edges in enumerate(cell, INPUT_NODES)]


def _write(edges: Sequence[Any]) -> str:
    return " + ".join(f"{edge.operation} of {edge.source}" for edge in edges)


def _runs(folder: Path, now_s: float) -> Iterator[LiveRun]:
    for config in sorted(folder.rglob(CONFIGURATION)):
        run = config.parent
        try:
            settings = json.loads(config.read_text())
            epochs = int(settings["recipe"]["epochs"])
        except (OSError, ValueError, KeyError, TypeError):
            continue  # being written, or something else
        metrics = run / METRICS
        written = metrics if metrics.is_file() else config
        name = folder.resolve().name if run == folder else str(run.relative_to(folder))
        finished = any((run / result).is_file() for result in RESULTS)
        stage = str(settings.get("stage", "train"))
        news_s, names = max(0.0, now_s - written.stat().st_mtime), tuple(map(str, settings.get("candidates", ())))
        yield LiveRun(name, stage, epochs, _rows(metrics), finished, news_s, names)


def _rows(metrics: Path) -> list[Mapping[str, Any]]:
    """All whole lines; the last one may be half written."""
    found = []
    for line in metrics.read_text().splitlines() if metrics.is_file() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def _stages(file: Path) -> tuple[Stage, ...]:
    try:
        log = json.loads(file.read_text())["stages"]
        plan = Schedule.from_json(log["estimate"]["result"], where=str(file)).stages
    except (OSError, ValueError, KeyError, TypeError, InputError):
        return ()
    return tuple(
        Stage(
            planned.stage,
            bool(log.get(planned.stage, {}).get("finished")),
            float(log[planned.stage]["seconds"]) if log.get(planned.stage, {}).get("finished") else planned.seconds,
        )
        for planned in plan
    )
