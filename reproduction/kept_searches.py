"""Kept searches: what a search of cells came to, what a placement search chose, and rankings of cells (results/)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphynx.search.placement.doubt import doubt
from sphynx.search.placement.recipe import name_method
from sphynx.space.cell import Cell
from sphynx.space.genotype import Genotype
from sphynx.space.json_file import read_json

CONVOLUTIONS = ("conv3", "conv5", "dil3", "dil5")
PAPERS_TAU = 1000.0


@dataclass(frozen=True)
class KeptPlacement:
    """A kept search for the places of two reduce cells, in a network of the published cells."""

    name: str
    channels: int
    depth: int
    estimator: str
    epochs: int
    best: tuple[int, ...]
    probability: float  # of the best, at the end
    doubt: str  # why the choice is inconclusive, or nothing
    beta_warmup: float = 0.0  # share of the schedule in which beta does not learn, which the paper does not have
    tau_start: float = PAPERS_TAU  # the temperature of the first epoch; the released code's default is 10
    rivals: str = "uniform"  # how the released form draws candidates to compare with; its code does so uniformly

    def counts(self, rivals: str) -> bool:
        """Return whether it is in the released form with the printed temperature, and these rivals."""
        form = (self.estimator, self.tau_start, self.beta_warmup, self.rivals)
        return form == ("released", PAPERS_TAU, 0.0, rivals)

    @property
    def method(self) -> str:
        name = name_method(self.estimator, self.rivals)  # type: ignore[arg-type]  # a kept file's, as the recipe wrote them
        return name + self.waited

    @property
    def waited(self) -> str:
        return f", beta from {self.beta_warmup:.0%} of the steps on" if self.beta_warmup else ""


@dataclass(frozen=True)
class KeptSearch:
    name: str
    strategy: str
    recipe: Mapping[str, Any]
    seed: int
    epochs: int  # that ran
    held_out: float | None  # of the supernet, after the last of them; an early file has none
    genotype: Genotype

    def convolutions(self) -> tuple[int, int]:
        """Edges of the normal and of the reduce cell that are convolutions."""
        return count_convolutions(self.genotype.normal), count_convolutions(self.genotype.reduce)


@dataclass(frozen=True)
class RankedCells:
    """One entry of a ranking, trained for its whole length and scored on held-out training images."""

    label: str
    cells: str  # the genotype's name: a published one's, a strategy's, or random-N
    settings: str  # equal ones compare
    accuracy: float  # percent


def count_convolutions(cell: Cell) -> int:
    return sum(edge.operation in CONVOLUTIONS for pair in cell for edge in pair)


def read_placements(folder: Path) -> list[KeptPlacement]:
    found = []
    for file in sorted(folder.glob("*.json")):
        data = read_json(file)
        design, recipe, beta = data["config"]["design"], data["config"]["recipe"], data["beta"]
        places = [tuple(place) for place in beta["placements"]]
        if len(places[0]) != 2 or design["genotype"].get("name") != "sphynx":
            continue
        history: Sequence[Sequence[float]] = beta["beta_hat"]
        found.append(
            KeptPlacement(
                file.stem,
                design["channels"],
                design["depth"],
                recipe.get("estimator", "paper"),
                len(history),
                tuple(beta["best"]),
                max(history[-1]),
                doubt(places, history),
                recipe.get("beta_warmup", 0.0),
                recipe["tau_start"],
                recipe.get("rivals", "uniform"),
            )
        )
    return found


def read_searches(folder: Path) -> list[KeptSearch]:
    """Files of one search each; those of rankings, which lie beside them, hold none."""
    found = []
    for file in sorted(folder.glob("*.json")):
        data = read_json(file)
        if "genotype" not in data:
            continue
        config, rows = data["config"], data["metrics"]
        found.append(
            KeptSearch(
                file.stem,
                config["strategy"],
                config["recipe"],
                config["seed"],
                len(rows),
                rows[-1].get("held_out"),
                Genotype.from_json(data["genotype"]),
            )
        )
    return found


def read_rankings(folder: Path) -> list[RankedCells]:
    found = []
    for file in sorted(folder.glob("ranking*.json")):
        data = read_json(file)
        places = ",".join(map(str, data["reduce_positions"]))
        epochs = data["recipe"]["epochs"]
        network = f"C={data['channels']} D={data['depth']} reduce {places}, {data['conv_stack']} convolutions"
        found += [
            RankedCells(
                entry["label"],
                entry["genotype"].get("name", ""),
                f"{network}, {epochs} epochs",
                100 * entry["trainings"][-1]["accuracy"],
            )
            for entry in data["ranking"]
            if entry["trainings"][-1]["epochs"] == epochs
        ]
    return found
