"""Search strategies, one file each, behind the interface in `strategy`."""

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

STRATEGIES: dict[str, Callable[[SharedWeights, torch.Generator], Strategy]] = {
    "darts": Darts,
    "darts-unrolled": partial(Darts, order="unrolled"),
    "darts-2nd": partial(Darts, order="second"),
    "pc-darts": PcDarts,
    "gdas": Gdas,
    "gaea": Gaea,
    "enas": Enas,
    "random": RandomSearch,
}


def channel_divisor(strategy: str, recipe: SearchRecipe) -> int:
    """The K that a strategy's supernet is built with."""
    if strategy not in STRATEGIES:
        raise InputError(f"there is no strategy {strategy!r}", remedy=f"Use one of {', '.join(STRATEGIES)}.")
    return {"pc-darts": recipe.pc_channel_divisor, "gaea": recipe.gaea_channel_divisor}.get(strategy, 1)
