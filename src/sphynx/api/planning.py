"""From a budget to a design: channels and depth for a number of ReLUs, or for a latency, which alone needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack, overload

from sphynx.api.plan_settings import PlanSettings
from sphynx.config import refuse_unknown
from sphynx.errors import InputError
from sphynx.space.choices import Balancing, Borders, Convolution, ConvStack, Family, StemChoice
from sphynx.space.design import Design, default_reduce_positions, stem_for
from sphynx.space.genotype import Genotype
from sphynx.space.planner import PlanList, parse_percentage, parse_relu_budget
from sphynx.space.planner import plan as plan_budget
from sphynx.space.published_cells import find_cells, into_sphynx_space
from sphynx.space.stream_planner import StreamPlanList, plan_stream
from sphynx.space.tally import Shape

if TYPE_CHECKING:
    from sphynx.program.backends import BackendChoice
    from sphynx.program.cost.estimate import Estimate

PICTURE_CHANNELS = (1, 3)  # grey, colour


class _Images(TypedDict, total=False):
    image: tuple[int, int, int]
    classes: int
    tolerance: float | str


class CellKeywords(_Images, total=False):
    """Keywords of a plan of cells, for type checkers; `PlanSettings` has their meanings and defaults."""

    cells: Genotype | str | Path
    stem: StemChoice
    balancing: Balancing
    conv_stack: ConvStack
    convolution: Convolution


class StreamKeywords(_Images, total=False):
    """Keywords of a plan of a stream."""

    borders: Borders
    width: int


@dataclass(frozen=True)
class LatencyPlan:
    """The most ReLUs that fit a latency, the networks of about that many, and how long the chosen one takes.

    >>> plan = sphynx.plan(latency_budget="100ms", link="wan")  # doctest: +SKIP
    >>> plan.relu_budget, plan.estimate.total.online_seconds  # doctest: +SKIP
    """

    relu_budget: int
    plans: PlanList
    estimate: Estimate

    @property
    def design(self) -> Design:
        return self.plans.design


@overload
def plan(
    relu_budget: int | str, *, family: Literal["cells"] = "cells", **settings: Unpack[CellKeywords]
) -> PlanList: ...
@overload
def plan(
    relu_budget: int | str, *, family: Literal["stream"], **settings: Unpack[StreamKeywords]
) -> StreamPlanList: ...
@overload
def plan(
    *, latency_budget: float | str, link: str = "lan", backend: BackendChoice = "auto", **settings: Unpack[CellKeywords]
) -> LatencyPlan: ...
def plan(
    relu_budget: int | str | None = None, *, family: Family = "cells", **settings: Any
) -> PlanList | StreamPlanList | LatencyPlan:
    """Every network within `tolerance` of a budget, and a choice: `.design`, with `.reason`.

    `relu_budget` is 51200, "50k" or "1.2M"; `image` is channels, height, width, as in `data.image`. The family cells
    has one network for each number of channels and cells, with reduce cells at D/3 and 2D/3 (`place_reduce_cells` finds
    better places); stream one for each number of blocks. A `latency_budget`, seconds or "100ms", takes as many ReLUs as
    fit it over a `link` (loopback, lan, wan, or one such as "20ms,300Mbit") by the faster `backend` or the given one;
    it measures this machine once, in seconds, and needs torch.

        >>> plans = sphynx.plan("25.6k")
        >>> plans.design.channels, plans.design.depth, plans.design.relus
        (5, 5, 25600)
        >>> sphynx.plan("25.6k", family="stream").design.relus
        25600
        >>> sphynx.plan(latency_budget="500ms", link="wan").design.relus  # doctest: +SKIP
    """
    refuse_unknown(PlanSettings, settings, "plan")
    return plan_by(PlanSettings(relu_budget=relu_budget, family=family, **settings))


def plan_by(settings: PlanSettings) -> PlanList | StreamPlanList | LatencyPlan:
    """Plan by a record of settings; what it holds of the other family plays no part."""
    relus, latency, tolerance = settings.relu_budget, settings.latency_budget, parse_percentage(settings.tolerance)
    if (relus is None) == (latency is None):
        raise InputError(
            "a plan needs one budget, in ReLUs or in seconds",
            where="`relu_budget`, `latency_budget`",
            remedy="Give `relu_budget` or `latency_budget`.",
        )
    if latency is not None and settings.family == "stream":
        raise InputError("stream networks are planned by ReLUs", where="`latency_budget`", remedy="Give `relu_budget`.")
    if latency is not None:
        return _plan_for_latency(latency, settings, tolerance)
    budget = parse_relu_budget(relus or 0)
    if settings.family == "stream":
        shape = _shape(settings.image)
        return plan_stream(budget, tolerance, shape, settings.classes, settings.borders, settings.width)
    return plan_budget(_template(settings), budget, tolerance)


def _plan_for_latency(latency: float | str, settings: PlanSettings, tolerance: float) -> LatencyPlan:
    from sphynx.api.rates import machine_rates
    from sphynx.compiler.latency import largest_within
    from sphynx.program.cost.link import parse_link, parse_seconds

    seconds, backend = parse_seconds(latency), None if settings.backend == "auto" else settings.backend
    template, link = _template(settings), parse_link(settings.link)
    return LatencyPlan(*largest_within(template, seconds, tolerance, machine_rates(), link, backend))


def _template(settings: PlanSettings) -> Design:
    """A design of the least size; the plan says which size is wanted."""
    shape, cells = _shape(settings.image), settings.cells
    return Design(
        genotype=into_sphynx_space(cells) if isinstance(cells, Genotype) else find_cells(cells),
        channels=2,
        depth=3,
        reduce_positions=default_reduce_positions(3),
        image=shape,
        classes=settings.classes,
        stem=stem_for(settings.stem, shape.height),
        balancing=settings.balancing,
        conv_stack=settings.conv_stack,
        convolution=settings.convolution,
    )


def _shape(image: tuple[int, int, int]) -> Shape:
    if not isinstance(image, Sequence) or len(image) != 3 or not all(isinstance(length, int) for length in image):
        raise InputError(
            f"{image!r} is not channels, height and width", where="`image`", remedy="Give three numbers: (3, 32, 32)."
        )
    first, second, last = image
    if last in PICTURE_CHANNELS and min(first, second) > max(PICTURE_CHANNELS):
        raise InputError(
            f"{tuple(image)} would be an image of {first} channels, {second} high and {last} wide",
            where="`image`",
            remedy=f"Give the channels first: {(last, first, second)}.",
        )
    return Shape(*image)
