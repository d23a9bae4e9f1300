"""From a ReLU budget to channels and depth: every (C, D) within tolerance, and a default choice with its reason.

With ReLU balancing a network has exactly H0*W0*C*D ReLUs (plus the ImageNet stem's; more where a size is odd), so the
candidates can be listed outright. The paper found accuracy nearly flat across them (69.38 +- 0.23 % at 50K on
CIFAR-100); its own choices are C >= 5 and, up to 10 cells, depth before width, and so is the default here. The one
exception, C=15, D=15 at 230.4K, is listed and not chosen.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from sphynx.errors import InputError
from sphynx.space.account import relu_count
from sphynx.space.channel_counts import ChannelCounts
from sphynx.space.design import Design, default_reduce_positions
from sphynx.units import percent

MIN_DEPTH = 3  # two reduce cells and at least one more: fewer has no place to put them
MAX_DEPTH = 40
MOST_PLANS = 1_000_000  # more take minutes and gigabytes to list
PAPER_MIN_CHANNELS = 5
PAPER_DEPTHS = range(5, 11)

_SUFFIX = {"": 1, "k": 10**3, "m": 10**6}


def parse_relu_budget(budget: int | str) -> int:
    """`50k`, `1.2M` or `51200`."""
    text = str(budget)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmM]?)\s*", text.replace(",", "").replace("_", ""))
    relus = Fraction(match[1]) * _SUFFIX[match[2].lower()] if match else Fraction(0)
    if relus < 1:
        raise InputError(f"{text!r} is not a valid ReLU budget", remedy="Write it as 50k, 1.2M or 51200.")
    return int(relus)


def parse_percentage(share: float | str) -> float:
    """`5%` or `0.05`."""
    text = str(share)
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    value = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= value < 1:
        raise InputError(f"{text!r} is not a valid tolerance", remedy="Write it as 5% or 0.05.")
    return value


@dataclass(frozen=True)
class Plan:
    """A network by its size. Large budgets have 100,000 of them, so that a design is made when one is asked for."""

    template: Design  # of this depth
    channels: int
    relus: int
    parameters: int
    macs: int
    chosen: bool = False

    def __repr__(self) -> str:
        counts = f"{self.relus:,} ReLUs, {self.parameters:,} parameters, {self.macs:,} multiplications"
        return f"Plan({self.channels} channels, {self.depth} cells: {counts})"

    @property
    def depth(self) -> int:
        return self.template.depth

    @property
    def design(self) -> Design:
        return replace(self.template, channels=self.channels)


@dataclass(frozen=True)
class PlanList:
    """The networks of cells within a ReLU budget, one of them chosen.

    >>> plans: sphynx.PlanList = sphynx.plan("500", image=(1, 8, 8), classes=10)
    >>> plans.design == plans.chosen.design
    True
    """

    plans: tuple[Plan, ...]
    reason: str
    relu_budget: int

    def __repr__(self) -> str:
        """The chosen one: large budgets have 100,000."""
        return f"PlanList({len(self.plans):,} plans, chosen: {self.chosen})"

    @property
    def chosen(self) -> Plan:
        return next(plan for plan in self.plans if plan.chosen)

    @property
    def design(self) -> Design:
        """The chosen one's."""
        return self.chosen.design


def plan(template: Design, relu_budget: int, tolerance: float) -> PlanList:
    """Every (C, D) whose ReLU count is within `tolerance` of the budget; `template` gives all the rest.

    Reduce cells stand at D/3 and 2D/3 here, and are placed later: that does not change the ReLU count where every size
    can be halved exactly.
    """
    families = [_Family(template, depth) for depth in range(MIN_DEPTH, MAX_DEPTH + 1)]
    ranges = [family.channels_within(relu_budget, tolerance) for family in families]
    if sum(map(len, ranges)) > MOST_PLANS:
        raise InputError(
            f"more than {MOST_PLANS:,} networks have {relu_budget:,} ReLUs within {percent(tolerance, 1)} "
            f"on {template.image} images",
            remedy="Lower `relu_budget` or `tolerance`.",
        )
    plans = [family.plan(channels) for family, own in zip(families, ranges, strict=True) for channels in own]
    if not plans:
        neighbours = (found for family in families for found in family.neighbours(relu_budget))
        nearest = min(neighbours, key=lambda p: abs(p.relus - relu_budget))
        off = 100 * abs(nearest.relus - relu_budget) // relu_budget + 1
        raise InputError(
            f"no channels and depth ({MIN_DEPTH} to {MAX_DEPTH} cells) give {relu_budget:,} ReLUs "
            f"within {percent(tolerance, 1)} on {template.image} images",
            remedy=f"The nearest is {nearest.relus:,} (C={nearest.channels}, D={nearest.depth}): "
            f"use it as the budget{f', or give `tolerance={off / 100}`' if off < 100 else ''}.",
        )
    within = [p for p in plans if p.channels >= PAPER_MIN_CHANNELS and p.depth in PAPER_DEPTHS]
    if within:
        best = min(within, key=lambda p: (-p.depth, abs(p.relus - relu_budget)))
        why = (
            f"the deepest with C >= {PAPER_MIN_CHANNELS} and D <= {PAPER_DEPTHS.stop - 1}, "
            "where all of the paper's networks lie except its largest on CIFAR-100 (C=15, D=15)"
        )
    else:
        best = min(plans, key=lambda p: (_lopsidedness(p), abs(p.relus - relu_budget)))
        why = "the one whose depth is nearest to its width"
    return PlanList(
        tuple(replace(p, chosen=True) if p is best else p for p in sorted(plans, key=lambda p: p.channels)),
        f"C={best.channels}, D={best.depth}: {why}; the paper measured accuracy to be nearly flat across the choices.",
        relu_budget,
    )


def least_relus(template: Design) -> int:
    """Count the ReLUs of the smallest network that `plan` can list."""
    return relu_count(_with_size(template, _min_channels(template), MIN_DEPTH))


def _lopsidedness(plan: Plan) -> float:
    return abs(math.log(plan.channels / plan.depth))


class _Family:
    """The networks of one depth. Their ReLUs grow with C, so a range of ReLUs is a range of C, found by its ends."""

    def __init__(self, template: Design, depth: int) -> None:
        self.least = _min_channels(template)
        self._counts = ChannelCounts(_with_size(template, self.least, depth))

    def channels_within(self, relu_budget: int, tolerance: float) -> range:
        low, high = relu_budget * (1 - tolerance), relu_budget * (1 + tolerance)
        first = max(self.least, self._largest_channels(math.ceil(low) - 1) + 1)
        return range(first, self._largest_channels(math.floor(high)) + 1)

    def neighbours(self, relu_budget: int) -> Iterator[Plan]:
        below = self._largest_channels(relu_budget)
        return (self.plan(channels) for channels in (below, below + 1) if channels >= self.least)

    def _largest_channels(self, relus: int) -> int:
        """The largest C whose network has at most `relus` ReLUs (one less than the smallest C if none has)."""
        low = self.least - 1
        high = low + 1
        while self._counts.of(high).relus <= relus:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._counts.of(middle).relus <= relus else (low, middle)
        return low

    def plan(self, channels: int) -> Plan:
        total = self._counts.of(channels)
        return Plan(self._counts.design, channels, total.relus, total.parameters, total.macs)


def _min_channels(template: Design) -> int:
    return 2 if template.stem == "imagenet" else 1


def _with_size(template: Design, channels: int, depth: int) -> Design:
    return replace(template, channels=channels, depth=depth, reduce_positions=default_reduce_positions(depth), name="")
