"""Outcomes of an experiment's rows: ours beside the paper's, with the network that ran and where it ran."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reproduction.experiments import Experiment, Row
from reproduction.scales import SCALES, Scale, design_of
from sphynx.errors import InputError
from sphynx.report.naming import DATA_SETS, describe_network
from sphynx.report.provenance import Provenance, provenance
from sphynx.search.ranking import random_cells
from sphynx.search.strategies import STRATEGIES
from sphynx.search.supernet.cellspace import CellSpace
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign, any_design_from_json, design_fingerprint
from sphynx.space.genotype import Genotype
from sphynx.space.json_file import read_json
from sphynx.space.published_cells import genotype_named, into_sphynx_space
from sphynx.train.job import TEACHER_WEIGHTS
from sphynx.train.results import TrainResult

SEARCHED, RANDOM = "search:", "random:"  # what `Row.cells` may begin with
RANDOM_NODES, RANDOM_SEED = 7, 0
TRAININGS = ("cifar100", "paper", "tiny-imagenet")  # folders of results/ that hold trainings of the paper's networks


@dataclass(frozen=True)
class Ours:
    """One network of ours, over its seeds. Accuracy in percent, on test images, at the final epoch."""

    network: str
    data: str
    relus: int
    accuracy: float
    std: float | None
    seeds: int
    epochs: int
    made: Provenance
    beta: tuple[float, ...] = ()  # the learned probability of this placement, after each epoch of its search
    folders: tuple[str, ...] = ()
    minutes: float = 0.0  # of one training
    search_minutes: float | None = None  # of the placement search that gave beta
    best_epoch: float | None = (
        None  # the best test epoch's accuracy, where it was recorded: the paper's code reports it
    )
    differs: tuple[str, ...] = ()  # settings of a kept result that are not the paper's
    design: str = ""  # its fingerprint: a row of searched cells has a network for each search
    teacher: str = ""  # which network taught it: a row of distilled ones has a network for each teacher

    @property
    def network_key(self) -> tuple[str, str]:
        """Equal for runs that differ by settings or seed alone."""
        return self.design, self.teacher

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "made": str(self.made),
            "made_here": self.made.here,
            "beta": list(self.beta),
            "folders": list(self.folders),
            "differs": list(self.differs),
        }


@dataclass(frozen=True)
class Outcome:
    row: Row
    ours: Ours | None
    missing: str = ""  # why there is nothing of ours
    kept: tuple[Ours, ...] = ()  # results that were made before, of the same network

    @property
    def has_several_networks(self) -> bool:
        """Then what is said of one says by its run which one it is."""
        return self.row.cells.startswith(SEARCHED) or len({ours.teacher for ours in self.kept}) > 1

    def to_json(self) -> dict[str, Any]:
        row = self.row
        return {
            "series": row.series,
            "label": row.label,
            "data": row.data,
            "distilled": row.distilled,
            "paper": {
                "accuracy": row.accuracy,
                "std": row.std,
                "beta": row.beta,
                "latency_ms": row.latency_ms,
                "source": row.source,
            },
            "ours": None if self.ours is None else self.ours.to_json(),
            "missing": self.missing,
            "kept": [kept.to_json() for kept in self.kept],
            "note": row.note,
        }


def outcomes_to_json(experiment: Experiment, scale: Scale, outcomes: Sequence[Outcome]) -> dict[str, Any]:
    return {
        "format": "sphynx-reproduction/1",
        "experiment": experiment.name,
        "title": experiment.title,
        "claim": experiment.claim,
        "claimed_by": "us" if experiment.ours else "the paper",
        "scale": scale.name,
        "meaning": scale.meaning,
        "notes": list(experiment.notes),
        "rows": [outcome.to_json() for outcome in outcomes],
    }


@dataclass(frozen=True)
class KeptResult:
    """A file under results/: one training run's result, configuration and environment."""

    name: str
    result: TrainResult
    config: Mapping[str, Any]
    environment: Mapping[str, Any]

    @cached_property
    def design(self) -> AnyDesign:
        return any_design_from_json(self.config["design"], where=self.name)

    @property
    def data(self) -> str:
        """The data set by the size and number of its images' classes; empty for one that the paper does not have."""
        own = (self.design.image, self.design.classes)
        return next((name for name, images in DATA_SETS.items() if images == own), "")

    @property
    def distilled(self) -> bool:
        return self.config["teacher"] is not None

    @property
    def teacher(self) -> str:
        """Name the network that taught it; older files do not say it, and each of them stands for itself."""
        found: str = self.config.get(TEACHER_WEIGHTS, self.name) if self.distilled else ""
        return found

    @property
    def differs(self) -> tuple[str, ...]:
        return differing_settings(self.data, self.config)

    def of(self, row: Row, present: Mapping[str, Any]) -> Ours | None:
        """Make the row\'s outcome if this is of its network. The form of conv3/conv5 may differ, and is said."""
        if self.distilled != row.distilled or self.data != row.data:
            return None
        design = self.design
        if row.cells.startswith(SEARCHED):
            if not (isinstance(design, Design) and _found_by_search(design.genotype, row)):
                return None
            cells: Genotype | None = design.genotype
        else:
            cells = cells_of(row)
        wanted = design_of(row, design.image, design.classes, cells)
        if isinstance(design, Design) and isinstance(wanted, Design):
            wanted = dataclasses.replace(wanted, conv_stack=design.conv_stack)
        if design_fingerprint(wanted) != design_fingerprint(design):
            return None
        best = self.result.best_test_accuracy
        return Ours(
            describe_network(design),
            row.data,
            design.account.total.relus,
            100 * self.result.accuracy,
            None,
            1,
            self.result.epochs,
            provenance(self.environment, present),
            folders=(self.name,),
            minutes=self.result.minutes,
            best_epoch=None if best is None else 100 * best,
            differs=self.differs,
            design=design_fingerprint(design),
            teacher=self.teacher,
        )


def without_reading(differs: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out how distillation was read, so that a student's settings compare with the same network's without a
    teacher: the paper's formula sums squares over the classes, its text says their mean, and either may be meant."""
    return tuple(text for text in differs if not text.startswith("distillation_reduction "))


# Not what is learned, but how it runs, or what is watched besides. Ours are in bf16; those that are not say so.
_BESIDE = {"precision", "memory_format", "acceleration", "test_each_epoch"}
_SINGLE = ("fp32", "tf32")


def differing_settings(data: str, config: Mapping[str, Any]) -> tuple[str, ...]:
    """List where a run departs from the paper's setting: the network's form, its teacher, and its recipe."""
    distilled = config["teacher"] is not None
    paper = SCALES["full"].recipe_for(data, distilled=distilled).to_json()
    recipe, design = config["recipe"], config["design"]
    found = [
        f"{name} {recipe[name]}"
        for name in paper
        if name in recipe and recipe[name] != paper[name] and name not in _BESIDE
    ]
    if recipe.get("precision") in _SINGLE:
        found.append(f"{recipe['precision']}, where others are in bf16")
    stack = design.get("conv_stack", "paper")
    if "genotype" in design and stack != "paper":
        found.insert(0, f"{stack} convolutions")
    if distilled and "genotype" not in config["teacher"]:
        found.insert(0, "a teacher of another kind")
    return tuple(found)


def read_kept(paths: Sequence[Path]) -> list[KeptResult]:
    """Files, all JSON files of a folder, or those of trainings in a folder like results/."""
    folders = [part for path in paths for part in (path, *(path / name for name in TRAININGS)) if part.is_dir()]
    files = [path for path in paths if not path.is_dir()]
    return [_load(file) for file in [*files, *(file for folder in folders for file in sorted(folder.glob("*.json")))]]


def _load(file: Path) -> KeptResult:
    data = read_json(file)
    missing = [key for key in ("result", "config", "environment") if key not in data]
    if missing:
        raise InputError(
            f"it lacks {', '.join(missing)}", where=str(file), remedy="Give results files such as results/cifar100."
        )
    result = TrainResult.from_json(data["result"], where=f"{file}, result")
    return KeptResult(file.stem, result, data["config"], data["environment"])


def cells_of(row: Row) -> Genotype | None:
    """The row's cells where they are published or drawn at random; None for networks that have no cells."""
    if not row.cells:
        return None
    if row.cells.startswith(RANDOM):
        number = int(row.cells.removeprefix(RANDOM))
        return list(random_cells(CellSpace(RANDOM_NODES), number + 1, RANDOM_SEED).values())[number]
    found = genotype_named(row.cells)
    return into_sphynx_space(found) if row.network == "sphynx" else found


def _found_by_search(genotype: Genotype, row: Row) -> bool:
    """A search names its cells by its strategy."""
    return genotype.nodes == int(row.cells.removeprefix(SEARCHED)) and genotype.name in STRATEGIES
