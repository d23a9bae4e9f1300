"""From what a user asks for to a `Request`: names are looked up, texts read, contradictions refused.

order = Order(settings, budget)       before the data are read, which can take long
order.request(data)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from sphynx.data.images import Data
from sphynx.design.request import Request, placement_recipe, search_recipe, training_recipe
from sphynx.design.retraining import HELD_OUT, too_few_to_rank
from sphynx.design.settings import Budget, DesignSettings
from sphynx.design.stages import split_by_stage
from sphynx.design.time_budget import parse_duration
from sphynx.errors import InputError
from sphynx.run.settings import AUTO
from sphynx.space.design import parse_positions, stem_for
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import find_cells, into_sphynx_space

STAGES = ("cells", "placement", "training")
USUAL_RANDOM_CELLS = 3


class Order:
    """The settings of a design, read. `notes` says where less is done than was asked for, once there is a request."""

    def __init__(self, settings: DesignSettings, budget: Budget) -> None:
        self.settings, self.notes = settings, tuple[str, ...]()
        self._budget = budget
        self._placement = _read_places(settings.reduce_at)
        time = settings.time_budget
        self._time_budget = parse_duration(time) if isinstance(time, str) else time
        cells = settings.cells
        self._genotype = into_sphynx_space(cells) if isinstance(cells, Genotype) else find_cells(cells)
        self._changes = _by_stage(settings.settings)
        _refuse_contradictions(settings, self._placement, self._changes)

    def request(self, data: Data) -> Request:
        asked, changes, strategy = self.settings, self._changes, self.settings.strategy
        if strategy is not None and asked.random_cells is None and too_few_to_rank(len(data.train)):
            strategy, self.notes = None, (_why_no_search(len(data.train)),)
        _, trained_by = training_recipe(asked.recipe, changes["training"], data)
        compared_by = trained_by if asked.compare == "same" else None
        if asked.compare not in ("same", "none"):
            _, compared_by = training_recipe(asked.compare, {}, data)
        rivals = USUAL_RANDOM_CELLS if asked.random_cells is None else asked.random_cells
        return Request(
            relu_budget=self._budget.relus,
            tolerance=self._budget.tolerance,
            stem=stem_for(asked.stem, data.image[1]),
            conv_stack=asked.conv_stack,
            genotype=self._genotype,
            strategy=strategy or "",
            rivals=0 if strategy is None else rivals,
            placement=self._placement,
            reduce_cells=asked.reduce_cells,
            candidates=asked.candidates,
            search=search_recipe(asked.search_recipe, {**changes["cells"], "reduce_at": []}, data),  # the outline's
            placing=placement_recipe(asked.placement_recipe, changes["placement"], data),
            training=trained_by,
            comparison=compared_by,
            seed=asked.seed,
            seeds=asked.seeds,
            time_budget=self._time_budget,
        )


def _refuse_contradictions(asked: DesignSettings, placement: object, changes: Mapping[str, Mapping[str, Any]]) -> None:
    if asked.strategy is None and asked.random_cells is not None:
        raise InputError(
            "random cells are ranked only together with searched cells",
            where="`random_cells`",
            remedy="Give `strategy`, or leave `random_cells` out.",
        )
    if asked.strategy is None and asked.search_recipe != AUTO:
        raise InputError(
            "cells are searched only with a strategy",
            where="`search_recipe`",
            remedy="Give `strategy`, or leave `search_recipe` out.",
        )
    if asked.strategy is not None and asked.cells != "sphynx":
        raise InputError("`cells` and `strategy` exclude each other", remedy="Give `cells` or `strategy`.")
    if placement != "search" and asked.reduce_cells is not None:
        raise InputError(
            "`reduce_cells` only applies to a search that places them",
            where="`reduce_cells`",
            remedy="Leave `reduce_cells` or `reduce_at` out.",
        )
    if asked.strategy is None:
        _refuse_idle("cells", changes, "no cells are searched", "Give `strategy`")
    if placement != "search":
        _refuse_idle("placement", changes, "no reduce cells are placed", "Leave the positions to a search")


def _read_places(reduce_at: str | Sequence[int]) -> Literal["search", "fixed"] | tuple[int, ...]:
    if reduce_at == "search" or reduce_at == "fixed":
        return "search" if reduce_at == "search" else "fixed"
    return parse_positions(reduce_at) if isinstance(reduce_at, str) else tuple(map(int, reduce_at))


def _by_stage(settings: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    stages = split_by_stage(STAGES, settings)
    if "reduce_at" in stages["cells"]:
        raise InputError(
            "the supernet takes its reduce positions from the network",
            where="`settings`, cells.reduce_at",
            remedy="Give `reduce_at`, or run the cell search alone with that setting and give its cells as `cells`.",
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
        f"No cells are searched: {images:,} training images are too few for a choice. A ranking on "
        f"{images * HELD_OUT:.0f} of them would be decided by chance, so the published cells are used. "
        f"`random_cells={USUAL_RANDOM_CELLS}` searches and ranks anyway, `random_cells=0` uses what is found."
    )
