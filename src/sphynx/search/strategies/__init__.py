"""Search strategies, one file each, behind the interface in `strategy`.

A class of your own with that interface is taken in place of a name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch

from sphynx.errors import InputError
from sphynx.search.recipe import SearchRecipe
from sphynx.search.strategies.darts import Darts
from sphynx.search.strategies.enas import Enas
from sphynx.search.strategies.gaea import Gaea
from sphynx.search.strategies.gdas import Gdas
from sphynx.search.strategies.pc_darts import PcDarts
from sphynx.search.strategies.random_search import RandomSearch
from sphynx.search.strategies.strategy import Strategy
from sphynx.search.supernet.weights import SharedWeights

Maker = Callable[[SharedWeights, torch.Generator], Strategy]
STRATEGIES: dict[str, Maker] = {
    "darts": Darts,
    "darts-unrolled": partial(Darts, order="unrolled"),
    "darts-2nd": partial(Darts, order="second"),
    "pc-darts": PcDarts,
    "gdas": Gdas,
    "gaea": Gaea,
    "enas": Enas,
    "random": RandomSearch,
}


def name_of(strategy: str | Maker) -> str:
    """Return the name by which a run and its result remember a strategy: that of the class, for one of your own."""
    if isinstance(strategy, str):
        return strategy
    named = getattr(strategy, "name", "")  # of a class that sets it in __init__ there is none yet
    return named if isinstance(named, str) and named else getattr(strategy, "__name__", type(strategy).__name__)


def maker_of(strategy: str | Maker) -> Maker:
    """Refuses a name that there is not."""
    if not isinstance(strategy, str):
        return strategy
    if strategy not in STRATEGIES:
        raise InputError(f"there is no strategy {strategy!r}", remedy=f"Use one of {', '.join(STRATEGIES)}.")
    return STRATEGIES[strategy]


def is_relaxed(strategy: str | Maker) -> bool:
    """Return whether a strategy mixes all operations (`strategy.RelaxedStrategy`), before it is made."""
    maker = maker_of(strategy)
    return bool(getattr(getattr(maker, "func", maker), "is_relaxed", False))


def channel_divisor(strategy: str | Maker, recipe: SearchRecipe) -> int:
    """The K that a strategy's supernet is built with."""
    maker_of(strategy)
    divisors = {"pc-darts": recipe.pc_channel_divisor, "gaea": recipe.gaea_channel_divisor}
    return divisors.get(strategy, 1) if isinstance(strategy, str) else 1
