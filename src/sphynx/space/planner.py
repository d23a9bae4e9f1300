"""From a ReLU budget to channels and depth: every (C, D) within tolerance, and a default choice with its reason.

With ReLU balancing a network has exactly H0*W0*C*D ReLUs (plus the ImageNet stem's; more where a size is odd), so the
candidates can be listed outright. The paper found accuracy nearly flat across them (69.38 +- 0.23 % at 50K on
CIFAR-100); its own choices are C >= 5 and, up to 10 cells, depth before width, and so is the default here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from sphynx.errors import InputError
from sphynx.space.account import account_of, relu_count
from sphynx.space.design import Design, default_reduce_positions

MIN_DEPTH = 3  # two reduce cells and at least one more: fewer has no place to put them
MAX_DEPTH = 40
PAPER_MIN_CHANNELS = 5
PAPER_DEPTHS = range(5, 11)

_SUFFIX = {"": 1, "k": 10**3, "m": 10**6}


def parse_relu_budget(text: str) -> int:
    """`50k`, `1.2M` or `51200`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kKmM]?)\s*", text.replace(",", "").replace("_", ""))
    budget = Fraction(match[1]) * _SUFFIX[match[2].lower()] if match else Fraction(0)
    if budget < 1:
        raise InputError(f"{text!r} is not a ReLU budget", remedy="Write it as 50k, 1.2M or 51200.")
    return int(budget)


def parse_percentage(text: str) -> float:
    """`5%` or `0.05`."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*", text)
    value = float(match[1]) / (100 if match[2] else 1) if match else -1.0
    if not 0 <= value < 1:
        raise InputError(f"{text!r} is not a tolerance", remedy="Write it as 5% or 0.05.")
    return value


@dataclass(frozen=True)
class Plan:
    design: Design
    relus: int
    parameters: int
    macs: int
    chosen: bool = False


@dataclass(frozen=True)
class PlanList:
    plans: tuple[Plan, ...]
    reason: str

    @property
    def chosen(self) -> Plan:
        return next(plan for plan in self.plans if plan.chosen)


def plan(template: Design, relu_budget: int, tolerance: float) -> PlanList:
    """Every (C, D) whose ReLU count is within `tolerance` of the budget; `template` gives all the rest.

    Reduce cells stand at D/3 and 2D/3 here, and are placed later: that does not change the ReLU count where every size
    can be halved exactly.
    """
    plans = [
        _plan_of(_with_size(template, channels, depth)) for channels, depth in _sizes(template, relu_budget, tolerance)
    ]
    if not plans:
        nearest = min(_neighbours(template, relu_budget), key=lambda p: abs(p.relus - relu_budget))
        percent = 100 * abs(nearest.relus - relu_budget) // relu_budget + 1
        raise InputError(
            f"no channels and depth ({MIN_DEPTH} to {MAX_DEPTH} cells) give {relu_budget:,} ReLUs "
            f"within {tolerance:.1%} on {template.image} images",
            remedy=f"The nearest is {nearest.relus:,} (C={nearest.design.channels}, D={nearest.design.depth}): "
            f"take it as the budget{f', or give --tolerance {percent}%' if percent < 100 else ''}.",
        )
    within = [p for p in plans if p.design.channels >= PAPER_MIN_CHANNELS and p.design.depth in PAPER_DEPTHS]
    if within:
        best = min(within, key=lambda p: (-p.design.depth, abs(p.relus - relu_budget)))
        why = (
            f"the deepest with C >= {PAPER_MIN_CHANNELS} and D <= {PAPER_DEPTHS.stop - 1}, "
            "where the paper's networks lie"
        )
    else:
        best = min(plans, key=lambda p: (_lopsidedness(p.design), abs(p.relus - relu_budget)))
        why = "the nearest to as deep as wide"
    return PlanList(
        tuple(replace(p, chosen=p is best) for p in sorted(plans, key=lambda p: p.design.channels)),
        f"C={best.design.channels}, D={best.design.depth}: {why}; "
        "the paper measured accuracy to be nearly flat across the choices.",
    )


def least_relus(template: Design) -> int:
    """Of the smallest network that `plan` can list."""
    return relu_count(_with_size(template, _min_channels(template), MIN_DEPTH))


def _lopsidedness(design: Design) -> float:
    return abs(math.log(design.channels / design.depth))


def _sizes(template: Design, relu_budget: int, tolerance: float) -> Iterator[tuple[int, int]]:
    """Pairs (C, D) within tolerance. The count grows with C, so the range of C is found by its ends."""
    low, high = relu_budget * (1 - tolerance), relu_budget * (1 + tolerance)
    for depth in range(MIN_DEPTH, MAX_DEPTH + 1):
        first = max(_min_channels(template), _largest_channels(template, depth, math.ceil(low) - 1) + 1)
        for channels in range(first, _largest_channels(template, depth, math.floor(high)) + 1):
            yield channels, depth


def _neighbours(template: Design, relu_budget: int) -> Iterator[Plan]:
    for depth in range(MIN_DEPTH, MAX_DEPTH + 1):
        below = _largest_channels(template, depth, relu_budget)
        for channels in (below, below + 1):
            if channels >= _min_channels(template):
                yield _plan_of(_with_size(template, channels, depth))


def _min_channels(template: Design) -> int:
    return 2 if template.stem == "imagenet" else 1


def _largest_channels(template: Design, depth: int, relus: int) -> int:
    """The largest C whose network has at most `relus` ReLUs (one less than the smallest C if none has)."""

    def count(channels: int) -> int:
        return relu_count(_with_size(template, channels, depth))

    low = _min_channels(template) - 1
    high = low + 1
    while count(high) <= relus:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if count(middle) <= relus else (low, middle)
    return low


def _with_size(template: Design, channels: int, depth: int) -> Design:
    return replace(template, channels=channels, depth=depth, reduce_positions=default_reduce_positions(depth), name="")


def _plan_of(design: Design) -> Plan:
    total = account_of(design).total
    return Plan(design, total.relus, total.parameters, total.macs)
