"""The settings of a design, besides its data: keywords of the library, flags of the verb."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from sphynx.config import described, setting
from sphynx.run.settings import AUTO, SweepSettings
from sphynx.search.choices import Candidates, StrategyName
from sphynx.space.choices import IMAGENET_STEM_FROM, ConvStack, FamilyChoice, StemChoice
from sphynx.space.genotype import Genotype

if TYPE_CHECKING:
    from sphynx.network.trained import TrainedNetwork

AllocationChoice = Literal["planned", "search"]


@dataclass(frozen=True, kw_only=True)
class DesignSettings(SweepSettings):
    relu_budget: int | str = field(metadata=described("50k, 1.2M or 51200."))
    tolerance: float | str = setting("5%", "Allowed deviation from the budget.")
    family: FamilyChoice = setting(
        "auto", "cells; stream, which learns from a teacher; auto: the better of them for the data and the budget."
    )
    cells: Genotype | str | Path = setting(
        "sphynx", "A published genotype's name (sphynx, darts-v2, pc-darts, ...) or a file."
    )
    strategy: StrategyName | None = setting(
        None, "Search for cells with this strategy (such as gaea) instead of using the published ones."
    )
    random_cells: int | None = setting(
        None, "Random cells to rank against the found ones in short trainings. [default: 3]", least=0
    )
    reduce_at: str | Sequence[int] = setting(
        "search", "Where the reduce cells stand: search, fixed (D/3 and 2D/3), or positions such as 0,1."
    )
    reduce_cells: int | None = setting(
        None,
        "How many reduce cells to place. [default: 3 from 32 pixels on unless they are too wide, otherwise 2]",
        least=1,
    )
    candidates: Candidates = setting("paper", "all: C(D, n) placements. paper: positions up to 2D/3.")
    recipe: str = setting(AUTO, "A recipe's name, or a TOML file; auto chooses by the data.")
    compare: str = setting("same", "The recipe of the final table: same, none, or another (shorter) one.")
    search_recipe: str = setting(AUTO, "Recipe of the cell search.")
    placement_recipe: str = setting(AUTO, "Recipe of the placement.")
    settings: Mapping[str, Any] = setting(
        {},
        "A value of a stage's recipe: training.epochs=4; cells., placement.; teacher., allocation. May be repeated.",
    )
    time_budget: float | str | None = setting(None, "Scale the epochs to fit a time such as 90s, 15m or 2h.")
    seeds: int = setting(1, "Number of seeds; mean and spread are reported.", least=1)
    stem: StemChoice = setting("auto", f"auto: imagenet for images of {IMAGENET_STEM_FROM} pixels or more.")
    conv_stack: ConvStack = setting("single", "Structure of conv3 and conv5.")
    teacher: TrainedNetwork | str | Path | Sequence[TrainedNetwork | str | Path] = setting(
        AUTO,
        "What a stream learns from: auto trains wide ResNets; or trained runs and models' names, with commas between "
        "them.",
    )
    teachers: int = setting(1, "How many teachers are trained for a stream; the mean of their logits teaches.", least=1)
    teacher_recipe: str = setting(AUTO, "Recipe of a stream's teachers.")
    allocation: AllocationChoice = setting(
        "planned", "ReLUs of a stream's blocks: planned, or by a search among splits of the budget."
    )
    prices: str | Path | None = setting(
        None,
        "With a search for an allocation: a file of prices that `sphynx estimate` wrote for the planned stream. "
        "Allocations are then compared by its seconds instead of ReLUs.",
    )


class Budget(NamedTuple):
    """The ReLUs that settings ask for, and how far from them a design may be."""

    relus: int
    tolerance: float


def read_budget(settings: DesignSettings) -> Budget:
    from sphynx.space.planner import parse_percentage, parse_relu_budget  # help shows settings, and plans nothing

    return Budget(parse_relu_budget(settings.relu_budget), parse_percentage(settings.tolerance))
