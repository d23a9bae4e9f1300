"""Online latency of designs that are not trained yet: from shapes alone, with guessed widths.

The second convolution of a padded stack counts as a link of a chain, everything else as one map per cell. That is what
the compiler chooses for most cells; fusion/choose.py weighs every joint of a network that is really compiled, and of
streams here too.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from functools import cache

import torch

from sphynx.compiler.frontend.torch_network import trace
from sphynx.compiler.fusion.choose import choose_cuts
from sphynx.compiler.fusion.fuse import Fused
from sphynx.compiler.precision import Precision
from sphynx.errors import InputError
from sphynx.network.build import build_network
from sphynx.program.backends import Backend
from sphynx.program.cost.deployment import Deployment
from sphynx.program.cost.estimate import Estimate, estimate
from sphynx.program.cost.link import Link
from sphynx.program.cost.rates import Rates
from sphynx.program.cost.widths import guess_bits, guess_program
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.planner import PlanList, least_relus, plan
from sphynx.space.stream import StreamDesign
from sphynx.units import percent, seconds_text

_DOUBLED = 7  # steps of a tenth
LEAST_TOLERANCE = 0.01  # with less, few of the budgets have a network, and the first that has one may be huge
BUDGETS = tuple(round(500 * 1.1**step) for step in range(110))  # 500 to 16 million ReLUs, a tenth apart


class _Stacks(Container[str]):
    """The joints inside an edge's stack of convolutions."""

    def __contains__(self, joint: object) -> bool:
        return isinstance(joint, str) and ".edges." in joint


def design_estimate(
    design: AnyDesign,
    rates: Rates,
    link: Link,
    backend: Backend | None,
    precision: Precision = Precision(),
    *,
    cuts: Container[str] | None = None,
) -> Estimate:
    """A stream is cut as the compiler would cut it, unless `cuts` are given."""
    if cuts is None and isinstance(design, Design):
        cuts = _Stacks() if design.conv_stack == "paper" else ()
    elif cuts is None:
        cuts = stream_cuts(design, link, backend, precision) if isinstance(design, StreamDesign) else ()
    graph = _outline(design)(cuts).graph
    bits = guess_bits(graph, precision.weight_bits, precision.activation_bits, precision.link_bits)
    return estimate(guess_program(graph, bits, precision.weight_bits), rates, link, backend)


def stream_cuts(
    design: StreamDesign, link: Link, backend: Backend | None, precision: Precision = Precision()
) -> Container[str]:
    return choose_cuts(_outline(design), precision, Deployment(backend, link))


def _outline(design: AnyDesign) -> Callable[[Container[str]], Fused]:
    network, channels = build_network(design), design.image.channels

    def outline(cuts: Container[str]) -> Fused:
        with torch.no_grad():
            return trace(network, (0.0,) * channels, (1.0,) * channels, cuts=cuts, outline=True)

    return outline


def largest_within(
    template: Design, online_seconds: float, tolerance: float, rates: Rates, link: Link, backend: Backend | None
) -> tuple[int, PlanList, Estimate]:
    """The largest ReLU budget whose chosen network fits, its plans, and the estimate of the chosen one.

    Doubled from the smallest until it no longer fits, then halved in between: no network is built that is much larger.
    Up to twice what was found is tried as well: a wider and shallower network has more ReLUs and may be faster.
    """
    if tolerance < LEAST_TOLERANCE:
        raise InputError(
            f"{percent(tolerance, 1)} is too small a tolerance for a latency budget",
            where="`tolerance`",
            remedy=f"Budgets are tried in steps of a tenth: allow at least {percent(LEAST_TOLERANCE, 0)}.",
        )
    too_slow: list[Design] = []

    @cache
    def planned(step: int) -> PlanList | None:
        """None where no network has about that many ReLUs: a large image leaves gaps."""
        try:
            return plan(template, BUDGETS[step], tolerance)
        except InputError:
            return None

    @cache
    def fitting(step: int) -> tuple[int, PlanList, Estimate] | None:
        plans = planned(step)
        if plans is None:
            return None
        design = plans.chosen.design
        if any(design.channels >= slow.channels and design.depth >= slow.depth for slow in too_slow):
            return None
        estimated = design_estimate(design, rates, link, backend)
        if estimated.total.online_seconds <= online_seconds:
            return BUDGETS[step], plans, estimated
        too_slow.append(design)
        return None

    found, least = None, least_relus(template)
    low, high = sum(budget * (1 + tolerance) < least for budget in BUDGETS), len(BUDGETS)
    while low < high:
        middle = min(low + _DOUBLED, (low + high) // 2)
        below = next((step for step in range(middle, low - 1, -1) if planned(step)), None)
        if below is not None and not fitting(below):
            high = below
            continue
        low = middle + 1
        if below is not None:
            found = fitting(below)
    step, last = low, low + _DOUBLED
    while step < min(last, len(BUDGETS)):
        if fitting(step):
            found, last = fitting(step), step + 1 + _DOUBLED
        step += 1
    if found is None:
        raise InputError(
            f"no network fits {seconds_text(online_seconds)} online over {link.name}",
            where="`latency_budget`",
            remedy="Allow more time, or name a faster link.",
        )
    return found
