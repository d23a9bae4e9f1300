"""One run of the paper's experiments: its settings, what it waits for, and how long it takes alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from reproduction.experiments import Row
from reproduction.outcomes import cells_of
from reproduction.scales import design_of
from sphynx.report.naming import DATA_SETS
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX

SHORT_EPOCHS = 30
CARRIED_FROM_SECONDS = 300.0
EPOCH_SECONDS = 0.92  # C=5, D=5, batch 512
ELSEWHERE = ("darts-v2-in-sphynx", "pc-darts-in-sphynx")  # have more convolutions than the published cells
IMAGE, CLASSES = DATA_SETS["cifar100"]
# The paper's recipe at another batch: the rate grows with it, after a warm-up (docs/results/rules.md).
BATCH_512: dict[str, Any] = {
    "batch_size": 512, "learning_rate": 0.1333, "schedule": "warmup-cosine", "warmup_epochs": 5
}  # fmt: skip
# Tried in turn where a run fails: how steps run, never what they compute.
PLAIN: tuple[dict[str, Any], ...] = ({},)
SEARCHING: tuple[dict[str, Any], ...] = ({}, {"lanes": False}, {"lanes": False, "cuda_graphs": False})
PLACING: tuple[dict[str, Any], ...] = ({}, {"cuda_graphs": False})
LONG: tuple[dict[str, Any], ...] = ({"acceleration": "compile"}, {})  # half a minute of compiling pays for itself


@dataclass(frozen=True)
class Planned:
    name: str
    kind: Literal["train", "place", "search"]
    seconds: float
    design: Callable[[Path], AnyDesign] | None = None  # from the folder of all runs: some need what others found
    recipe: str = "fast"
    settings: dict[str, Any] = field(default_factory=dict)
    seed: int = 0
    strategy: str = ""
    stop_after: int = 0  # a search stops after so many epochs of its schedule
    folder: str = ""  # of its run, where that is not its name
    needs: str = ""  # a run that must be finished
    teacher: str = ""
    variants: tuple[dict[str, Any], ...] = PLAIN
    data: str = "cifar100"

    @property
    def place(self) -> str:
        return self.folder or self.name

    @property
    def carried(self) -> bool:
        """Whether it may begin in one window and go on in another: what is short would rather wait."""
        return self.kind == "search" or self.seconds > CARRIED_FROM_SECONDS


def network(cells: Genotype, depth: int = 5, places: tuple[int, ...] = (0, 1)) -> Design:
    return Design(cells, 5, depth, places, IMAGE, CLASSES, conv_stack="paper")


def network_of(row: Row) -> AnyDesign:
    return design_of(row, *DATA_SETS[row.data], cells_of(row))


def name_of(row: Row) -> str:
    """A network's, whichever experiment it is a row of."""
    places = "" if row.reduce_at is None else f"-r{''.join(map(str, row.reduce_at))}"
    cells = "" if row.cells == "sphynx" else f"-{row.cells}"
    options = "".join(f"-{value or name}" for name, value in row.options.items()).replace("_", "-")
    return f"short-c{row.channels}-d{row.depth}{places}{cells}{options}"


def by_the_paper(name: str, design: AnyDesign, epoch_seconds: float, **settings: Any) -> Planned:
    watched = {"test_each_epoch": True, **settings}
    seconds = 600 * epoch_seconds
    return Planned(name, "train", seconds, lambda _runs: design, "paper-cifar100", watched, variants=LONG)


def search(
    name: str,
    folder: str,
    epochs: int,
    epoch_seconds: float,
    *,
    seed: int,
    by: str = "darts-unrolled",
    **settings: float,
) -> Planned:
    return Planned(
        name, "search", epochs * epoch_seconds, recipe="released", settings=settings, seed=seed,
        strategy=by, stop_after=epochs, folder=folder, variants=SEARCHING,
    )  # fmt: skip


def short(design: AnyDesign, name: str, seed: int = 0, epochs: int = SHORT_EPOCHS) -> Planned:
    """Plan a training by the recipe `fast`, at the reduced scale unless more epochs are given."""
    depth, channels = getattr(design, "depth", 5), getattr(design, "channels", 5)
    wide = 1.0 if channels <= 8 else 1.25 if channels <= 12 else 1.6
    grouped = 2.0 if getattr(design, "convolution", "vanilla") == "separable" else 1.0
    from_elsewhere = 1.9 if getattr(design, "genotype", SPHYNX).name in ELSEWHERE else 1.0
    seconds = epochs * EPOCH_SECONDS * depth / 5 * wide * grouped * from_elsewhere
    return Planned(name, "train", seconds, lambda _runs: design, settings={"epochs": epochs}, seed=seed)


def short_of_found(name: str, search_folder: str, needs: str, depth: int = 5) -> Planned:
    seconds = SHORT_EPOCHS * EPOCH_SECONDS * depth / 5
    design = partial(_load_found, search=search_folder, depth=depth)
    return Planned(name, "train", seconds, design, settings={"epochs": SHORT_EPOCHS}, needs=needs)


def _load_found(runs: Path, search: str, depth: int) -> Design:
    """The released rule: the cells of the epoch with the best held-out accuracy, of those that ran."""
    tried = [file.read_text().splitlines() for file in runs.glob(f"{search}*/metrics.jsonl")]
    rows = [json.loads(line) for line in max(tried, key=len)]
    return network(Genotype.from_json(max(rows, key=lambda row: float(row["held_out"]))["genotype"]), depth)
