"""Which family a design is of: the one that is asked for, or the better one for the data and the budget.

On CIFAR-100 streams are better than cells at every budget that both were trained at, by 5 points at 25.6K ReLUs and by
6 at 51.2K (docs/stream.md), and take a teacher's time more. Small data sets were not compared like that: cells, which
need no teacher, are taken there.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from sphynx.data.images import DataFace
from sphynx.design.ordering import Order
from sphynx.design.request import FEW_IMAGES
from sphynx.design.settings import Budget, DesignSettings, read_budget
from sphynx.design.stream_order import StreamOrder
from sphynx.errors import InputError
from sphynx.space.choices import Family, FamilyChoice
from sphynx.space.stream_planner import plan_stream
from sphynx.space.tally import Shape

OF_CELLS = (
    "cells", "strategy", "random_cells", "reduce_at", "reduce_cells", "candidates", "compare", "search_recipe",
    "placement_recipe", "stem", "conv_stack",
)  # fmt: skip
OF_STREAMS = ("teacher", "teachers", "teacher_recipe", "allocation", "prices")
STAGES_OF_CELLS, STAGES_OF_STREAMS = ("cells", "placement"), ("teacher", "allocation")


@dataclass(frozen=True)
class Orders:
    """The settings, read for each family that they may mean."""

    settings: DesignSettings
    budget: Budget
    cells: Order | None
    stream: StreamOrder | None


def read_orders(settings: DesignSettings) -> Orders:
    """Tell the faults of settings before the data are read, which can take long."""
    family, budget = asked_family(settings), read_budget(settings)
    cells = None if family == "stream" else Order(settings, budget)
    return Orders(settings, budget, cells, None if family == "cells" else StreamOrder(settings, budget))


def asked_family(settings: DesignSettings) -> FamilyChoice:
    """Tell the family that the settings name or belong to; those of the other one are refused, having no effect."""
    given = {
        "cells": _given(settings, OF_CELLS, STAGES_OF_CELLS),
        "stream": _given(settings, OF_STREAMS, STAGES_OF_STREAMS),
    }
    if settings.family != "auto":
        other = "stream" if settings.family == "cells" else "cells"
        if idle := given[other]:
            raise InputError(
                f"{', '.join(idle)} {'has' if len(idle) == 1 else 'have'} no effect on the family {settings.family}",
                where="`family`",
                remedy=f'Leave {"it" if len(idle) == 1 else "them"} out, or give `family="{other}"`.',
            )
        return settings.family
    if given["cells"] and given["stream"]:
        raise InputError(
            f"{given['cells'][0]} belongs to cells and {given['stream'][0]} to streams",
            where="`family`",
            remedy="Give settings of one family.",
        )
    return "cells" if given["cells"] else "stream" if given["stream"] else "auto"


def better_family(budget: Budget, data: DataFace) -> tuple[Family, str]:
    """Choose for settings that name none, and say why."""
    images = len(data.train)
    if images <= FEW_IMAGES:
        return "cells", f"Cells: on {images:,} training images streams were not compared with them. `family` chooses."
    try:
        plan_stream(budget.relus, budget.tolerance, Shape(*data.image), data.classes)
    except InputError as error:
        return "cells", f"Cells: {error.what}."
    return "stream", "Stream: better than cells of as many ReLUs by 5 points on CIFAR-100. `family` chooses."


def _given(settings: DesignSettings, names: tuple[str, ...], stages: tuple[str, ...]) -> list[str]:
    usual = {field.name: field.default for field in dataclasses.fields(settings)}
    named = [f"`{name}`" for name in names if getattr(settings, name) != usual[name]]
    return named + [f"`settings`, {name}" for name in settings.settings if name.partition(".")[0] in stages]
