"""From a budget to a design: channels and depth for a number of ReLUs, or for a latency, which alone needs torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from sphynx.errors import InputError
from sphynx.space.choices import Balancing, Borders, Convolution, ConvStack, StemChoice
from sphynx.space.design import Design, default_reduce_positions, stem_for
from sphynx.space.genotype import Genotype
from sphynx.space.planner import PlanList, parse_percentage, parse_relu_budget
from sphynx.space.planner import plan as plan_budget
from sphynx.space.published_cells import find_cells, into_sphynx_space
from sphynx.space.stream_planner import StreamPlanList
from sphynx.space.stream_planner import plan_stream as stream_plans
from sphynx.space.tally import Shape

if TYPE_CHECKING:
    from sphynx.program.backends import Backend
    from sphynx.program.cost.estimate import Estimate


class Flags(TypedDict, total=False):
    """Parameters that `plan` and `plan_for_latency` have in common."""

    image: tuple[int, int, int]
    classes: int
    cells: Genotype | str | Path
    tolerance: float | str
    stem: StemChoice
    balancing: Balancing
    conv_stack: ConvStack
    convolution: Convolution


CIFAR_IMAGE = (3, 32, 32)
CIFAR100_CLASSES = 100
PICTURE_CHANNELS = (1, 3)  # grey, colour


def plan(
    relu_budget: int | str,
    *,
    image: tuple[int, int, int] = CIFAR_IMAGE,
    classes: int = CIFAR100_CLASSES,
    cells: Genotype | str | Path = "sphynx",
    tolerance: float | str = 0.05,
    stem: StemChoice = "auto",
    balancing: Balancing = "relu",
    conv_stack: ConvStack = "single",
    convolution: Convolution = "vanilla",
) -> PlanList:
    """Every (channels, depth) within `tolerance` of a ReLU budget, and a choice: `.design`, with `.reason`.

    `relu_budget` is 51200, "50k" or "1.2M"; `image` is channels, height, width, as in `data.image`. Reduce cells stand
    at D/3 and 2D/3; `place_reduce_cells` finds better places.

        >>> plans = sphynx.plan("25.6k")
        >>> plans.design.channels, plans.design.depth, plans.design.relus
        (5, 5, 25600)
    """
    template = _template(image, classes, cells, stem, balancing, conv_stack, convolution)
    return plan_budget(template, parse_relu_budget(str(relu_budget)), parse_percentage(str(tolerance)))


def plan_stream(
    relu_budget: int | str,
    *,
    image: tuple[int, int, int] = CIFAR_IMAGE,
    classes: int = CIFAR100_CLASSES,
    tolerance: float | str = 0.05,
    borders: Borders = "halo",
    width: int = 0,
) -> StreamPlanList:
    """Stream networks within a ReLU budget, one for each number of blocks, and a choice: `.design`, with `.reason`.

    `width` is the stream's in its last stage; 0 stands for one that suits the budget.

        >>> sphynx.plan_stream("25.6k").design.relus
        25600
    """
    return stream_plans(
        parse_relu_budget(str(relu_budget)), parse_percentage(str(tolerance)), _shape(image), classes, borders, width
    )


@dataclass(frozen=True)
class LatencyPlan:
    """The most ReLUs that fit a latency, the networks of about that many, and how long the chosen one takes.

    >>> plan = sphynx.plan_for_latency("100ms", link="wan")  # doctest: +SKIP
    >>> plan.relu_budget, plan.estimate.total.online_seconds  # doctest: +SKIP
    """

    relu_budget: int
    plans: PlanList
    estimate: Estimate

    @property
    def design(self) -> Design:
        return self.plans.design


def plan_for_latency(
    latency_budget: float | str,
    *,
    link: str = "lan",
    backend: Backend | None = None,
    image: tuple[int, int, int] = CIFAR_IMAGE,
    classes: int = CIFAR100_CLASSES,
    cells: Genotype | str | Path = "sphynx",
    tolerance: float | str = 0.05,
    stem: StemChoice = "auto",
    balancing: Balancing = "relu",
    conv_stack: ConvStack = "single",
    convolution: Convolution = "vanilla",
) -> LatencyPlan:
    """Plan as many ReLUs as an online latency, seconds or "100ms", allows. Measures this machine once, in seconds.

    `link` is loopback, lan, wan, or one such as "20ms,300Mbit"; without a `backend` the faster one is used. Needs
    torch.

        >>> sphynx.plan_for_latency("500ms", link="wan").design.relus  # doctest: +SKIP
    """
    from sphynx.api.rates import machine_rates
    from sphynx.compiler.latency import largest_within
    from sphynx.program.cost.link import parse_link, parse_seconds

    seconds = parse_seconds(latency_budget) if isinstance(latency_budget, str) else latency_budget
    template = _template(image, classes, cells, stem, balancing, conv_stack, convolution)
    found = largest_within(
        template, seconds, parse_percentage(str(tolerance)), machine_rates(), parse_link(link), backend
    )
    return LatencyPlan(*found)


def _template(
    image: tuple[int, int, int],
    classes: int,
    cells: Genotype | str | Path,
    stem: StemChoice,
    balancing: Balancing,
    conv_stack: ConvStack,
    convolution: Convolution,
) -> Design:
    """A design of the least size; the plan says which size is wanted."""
    shape = _shape(image)
    return Design(
        genotype=into_sphynx_space(cells) if isinstance(cells, Genotype) else find_cells(cells),
        channels=2,
        depth=3,
        reduce_positions=default_reduce_positions(3),
        image=shape,
        classes=classes,
        stem=stem_for(stem, shape.height),
        balancing=balancing,
        conv_stack=conv_stack,
        convolution=convolution,
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
