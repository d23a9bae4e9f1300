"""From what a user asks for to a `Request`: names are looked up, texts read, contradictions refused.

Recipes and settings are those of `sphynx design`, which calls this as `sphynx.design_network` does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from sphynx.data.images import Data
from sphynx.design.request import Request, placement_recipe, search_recipe, training_recipe
from sphynx.design.retraining import HELD_OUT, too_few_to_rank
from sphynx.design.time_budget import parse_duration
from sphynx.errors import InputError
from sphynx.search.choices import Candidates, StrategyName
from sphynx.space.choices import ConvStack, StemChoice
from sphynx.space.design import stem_for
from sphynx.space.genotype import Genotype
from sphynx.space.planner import parse_percentage, parse_relu_budget
from sphynx.space.published_cells import find_cells, into_sphynx_space
from sphynx.train.recipe import AUTO

STAGES = ("cells", "placement", "training")
USUAL_RANDOM_CELLS = 3
NO_SETTINGS: Mapping[str, Any] = MappingProxyType({})

Places = Literal["search", "fixed"] | Sequence[int]


@dataclass(frozen=True)
class Order:
    request: Request
    notes: tuple[str, ...] = ()  # where less is done than was asked for


def order(
    data: Data,
    relu_budget: int | str,
    *,
    tolerance: float | str = 0.05,
    cells: Genotype | str | Path = "sphynx",
    strategy: StrategyName | None = None,
    random_cells: int | None = None,
    reduce_at: Places = "search",
    reduce_cells: int | None = None,
    candidates: Candidates = "paper",
    recipe: str = AUTO,
    compare: str = "same",
    search_recipe_name: str = AUTO,
    placement_recipe_name: str = AUTO,
    settings: Mapping[str, Any] = NO_SETTINGS,
    seed: int = 0,
    seeds: int = 1,
    time_budget: float | str | None = None,
    stem: StemChoice = "auto",
    conv_stack: ConvStack = "single",
) -> Order:
    """`settings` are values of the stages' recipes: {"training.epochs": 4, "cells.warmup": 0.25}."""
    if strategy is None and random_cells is not None:
        raise InputError(
            "random cells are ranked only together with searched cells",
            where="`random_cells`",
            remedy="Give `strategy`, or leave `random_cells` out.",
        )
    if strategy is not None and cells != "sphynx":
        raise InputError("`cells` and `strategy` exclude each other", remedy="Give `cells` or `strategy`.")
    if reduce_at != "search" and reduce_cells is not None:
        places = '`reduce_at="fixed"`' if reduce_at == "fixed" else "`reduce_at`"
        raise InputError(
            "`reduce_cells` only applies to a search that places them",
            where="`reduce_cells`",
            remedy=f"Leave `reduce_cells` or {places} out.",
        )
    changes = _by_stage(settings)
    if strategy is None:
        _refuse_idle("cells", changes, "no cells are searched", "Give `strategy`")
    if reduce_at != "search":
        _refuse_idle("placement", changes, "no reduce cells are placed", "Leave the positions to a search")
    notes: tuple[str, ...] = ()
    if strategy is not None and random_cells is None and too_few_to_rank(len(data.train)):
        strategy, notes = None, (_why_no_search(len(data.train)),)
    _, trained_by = training_recipe(recipe, changes["training"], data)
    compared_by = trained_by if compare == "same" else None
    if compare not in ("same", "none"):
        _, compared_by = training_recipe(compare, {}, data)
    request = Request(
        relu_budget=parse_relu_budget(str(relu_budget)),
        tolerance=parse_percentage(str(tolerance)),
        stem=stem_for(stem, data.image[1]),
        conv_stack=conv_stack,
        genotype=into_sphynx_space(cells) if isinstance(cells, Genotype) else find_cells(cells),
        strategy=strategy or "",
        rivals=0 if strategy is None else USUAL_RANDOM_CELLS if random_cells is None else random_cells,
        placement=_placement(reduce_at),
        reduce_cells=reduce_cells,
        candidates=candidates,
        search=search_recipe(search_recipe_name, {**changes["cells"], "reduce_at": []}, data),  # the outline says where
        placing=placement_recipe(placement_recipe_name, changes["placement"], data),
        training=trained_by,
        comparison=compared_by,
        seed=seed,
        seeds=seeds,
        time_budget=parse_duration(time_budget) if isinstance(time_budget, str) else time_budget,
    )
    return Order(request, notes)


def _placement(reduce_at: Places) -> Literal["search", "fixed"] | tuple[int, ...]:
    if reduce_at == "search" or reduce_at == "fixed":
        return reduce_at
    return tuple(map(int, reduce_at))


def _by_stage(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    stages: dict[str, dict[str, Any]] = {stage: {} for stage in STAGES}
    for name, value in settings.items():
        stage, dot, key = name.partition(".")
        if not dot or stage not in stages:
            raise InputError(
                f"{name!r} does not name a stage",
                where="`settings`",
                remedy=f"Write it as STAGE.NAME, such as training.epochs; the stages are {', '.join(stages)}.",
            )
        stages[stage][key] = value
    if "reduce_at" in stages["cells"]:
        raise InputError(
            "the supernet takes its reduce positions from the network",
            where="`settings`, cells.reduce_at",
            remedy="Give `reduce_at`, or search by itself with that setting and give the cells it finds as `cells`.",
        )
    return stages


def _refuse_idle(stage: str, changes: Mapping[str, Mapping[str, Any]], why: str, instead: str) -> None:
    """Refuse settings of a stage that will not run: whoever gives one expects something of it."""
    if idle := [f"{stage}.{name}" for name in changes[stage]]:
        named = ", ".join(idle)
        has = "has" if len(idle) == 1 else "have"
        raise InputError(
            f"{why}, so {named} {has} no effect", where="`settings`", remedy=f"{instead}, or leave {named} out."
        )


def _why_no_search(images: int) -> str:
    return (
        f"No cells are searched: {images:,} training images are too few to choose by. A ranking on "
        f"{images * HELD_OUT:.0f} of them would be decided by chance, so the published cells are used. "
        f"`random_cells={USUAL_RANDOM_CELLS}` searches and ranks anyway, `random_cells=0` uses what is found."
    )
