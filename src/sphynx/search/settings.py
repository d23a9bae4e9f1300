"""The settings of the searches, besides their design and data: keywords of the library, flags of the verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sphynx.config import setting
from sphynx.run.settings import AUTO, SweepSettings
from sphynx.search.choices import Candidates, Method, StrategyName

if TYPE_CHECKING:
    from sphynx.network.trained import TrainedNetwork
    from sphynx.search.strategies import Maker


@dataclass(frozen=True, kw_only=True)
class SearchSettings(SweepSettings):
    """Common to all searches."""

    recipe: str = setting(AUTO, "A recipe's name, or a TOML file; auto chooses by the data.")
    settings: Mapping[str, Any] = setting({}, "A value of the recipe, such as epochs=10. May be repeated.")


@dataclass(frozen=True, kw_only=True)
class CellSettings(SearchSettings):
    """A search for cells."""

    strategy: StrategyName | Maker = setting("gaea", "Strategy of the cell search.")
    seeds: int = setting(1, "Number of seeds; mean and spread are reported.", least=1)
    rank_recipe: str = setting("", "Rank the found cells by retraining with this training recipe.")
    random_cells: int = setting(0, "With `rank_recipe`: number of random cells to rank as well.", least=0)
    rank_with: Sequence[str | Path] = setting(
        (), "With `rank_recipe`: cells to rank as well, a published genotype's name or a file. May be repeated."
    )
    costs: Mapping[str, float] = setting({}, "The cost of an operation, such as conv5=2.5. May be repeated.")
    cost_weight: float = setting(0.0, "Weight of the costs in the objective.")


@dataclass(frozen=True, kw_only=True)
class PlacementSettings(SearchSettings):
    """A search for the places of reduce cells."""

    candidates: Candidates = setting("paper", "all: C(D, n) placements. paper: positions up to 2D/3.")
    reduce_cells: int = setting(2, "n, the number of reduce cells.", least=1)
    exhaustive: str = setting("", "Also train every placement with this training recipe.")


@dataclass(frozen=True, kw_only=True)
class AllocationSettings(SearchSettings):
    """A search for the ReLUs of each block of a stream."""

    method: Method = setting(
        "gumbel", "gumbel: one network per candidate, sampled. gates: one wide network that loses channels."
    )
    relu_budget: int | str | None = setting(None, "25.6k or 25600. [default: as many as the design has]")
    latency_budget: float | str | None = setting(
        None, "Instead of `relu_budget`: online latency, such as 90ms; needs `prices`."
    )
    prices: str | Path | None = setting(None, "The file that `sphynx estimate` wrote for the design.")
    multiple: int = setting(1, "Round the channels of larger blocks to multiples of this: 8 on a GPU.", least=1)
    training: str = setting(
        "",
        "A training recipe with a teacher's views, such as frontier: it trains the weights, and the allocation learns "
        "from the images that it holds out. Its values are settings too: training.NAME=VALUE.",
    )
    views: str | Path | None = setting(None, "With `training`: the file of views; created if missing.")
    teacher: TrainedNetwork | str | Path | None = setting(
        None, "With `training`: makes the views; a trained run or a model's name."
    )
    parts: int = setting(6, "gumbel: how many parts the budget is split into among the stages.", least=1)
    randoms: int = setting(4, "gumbel: random allocations to compare with.", least=0)
    factor: float = setting(2.0, "gates: start with this many times the channels.", least=1.0)
    exhaustive: str = setting("", "gumbel: also train every candidate with this training recipe.")
