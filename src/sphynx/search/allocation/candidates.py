"""Ways to spend a budget on the blocks of a stream network, all of the same stages, widths and block counts.

A budget of ReLUs: a channel on a map of h x w takes h w of it. A budget of seconds: a channel takes what a table of
prices says (`space.prices`). An allocation is named after how it came about:

    given        as the design has it
    uniform      every block gets the same share
    3:2:1        the stages' shares are as 3 to 2 to 1, blocks of a stage alike
    random 0     every block's share drawn at random, uniformly among all splits
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import InputError
from sphynx.space.prices import Prices
from sphynx.space.stream import StreamDesign

Floats = NDArray[np.float64]
PARTS = 6  # the grid of stage shares: that many equal parts, at least one for each stage with blocks


@dataclass(frozen=True)
class Budget:
    """The cost of a channel of each block, and the most that all of them together may cost."""

    costs: tuple[float, ...]
    total: float
    unit: str  # ReLUs or seconds
    multiple: int = 1  # of the channels of blocks with at least that many: tensor cores want 8

    def spent(self, design: StreamDesign) -> float:
        return sum(C * cost for C, cost in zip(all_channels(design), self.costs, strict=True))


def relu_budget(design: StreamDesign, relus: int, multiple: int = 1) -> Budget:
    pixels = (
        float(place.height * place.width)
        for stage, place in zip(design.stages, design.maps, strict=True)
        for _ in stage.channels
    )
    return Budget(tuple(pixels), float(relus), "ReLUs", multiple)


def latency_budget(design: StreamDesign, seconds: float, prices: Prices, multiple: int = 1) -> Budget:
    """Budget the seconds that the prices leave for channels: the rest is spent on rounds and on the stream itself."""
    prices.require_fit(design)
    return Budget(prices.channel_seconds, seconds - prices.fixed_seconds, "seconds", multiple)


def allocations(
    design: StreamDesign, budget: Budget, *, parts: int, randoms: int, seed: int
) -> dict[str, StreamDesign]:
    """List the candidates by name, without duplicates."""
    blocks = design.blocks
    random = np.random.default_rng(seed)
    shares: dict[str, Floats] = {"uniform": np.ones(blocks)}
    shares |= dict(_grid(design, parts))
    shares |= {f"random {number}": random.dirichlet(np.ones(blocks)) for number in range(randoms)}
    given = {"given": design} if budget.spent(design) <= budget.total else {}
    found = given | {name: allocated(design, share, budget) for name, share in shares.items()}
    first = {one.stages: name for name, one in reversed(found.items())}
    return {name: one for name, one in found.items() if first[one.stages] == name}


def allocated(design: StreamDesign, shares: Sequence[float] | Floats, budget: Budget) -> StreamDesign:
    """`shares` of the budget, block by block. Every block gets a channel; what rounding leaves goes to cheap blocks."""
    costs = np.array(budget.costs)
    if budget.total < costs.sum():
        raise InputError(
            f"one channel in each of {len(costs)} blocks takes {costs.sum():,g} {budget.unit}, "
            f"the budget is {budget.total:,g}",
            remedy="Raise the budget, or take a design of fewer blocks.",
        )
    wanted = np.asarray(shares, dtype=np.float64) / np.sum(shares) * budget.total / costs
    extra = np.maximum(wanted - 1, 0)
    room = (budget.total - costs.sum()) / max((extra * costs).sum(), 1e-12)
    channels = 1 + np.floor(extra * min(1.0, room) + 1e-9).astype(np.int64)
    multiple = budget.multiple
    channels = np.where(channels < multiple, channels, channels - channels % multiple)
    left = budget.total - (channels * costs).sum()
    for block in sorted(range(len(costs)), key=lambda block: (costs[block], -wanted[block])):
        more = max(0, int(left / costs[block] + 1e-9))
        up_to_one = min(more, max(0, multiple - int(channels[block])))
        more = up_to_one + (more - up_to_one) // multiple * multiple
        channels[block] += more
        left -= more * costs[block]
    return with_channels(design, channels.tolist())


def all_channels(design: StreamDesign) -> list[int]:
    return [C for stage in design.stages for C in stage.channels]


def with_channels(design: StreamDesign, channels: Sequence[int]) -> StreamDesign:
    left = iter(channels)
    stages = tuple(replace(stage, channels=tuple(next(left) for _ in stage.channels)) for stage in design.stages)
    return replace(design, stages=stages, name="")


def _grid(design: StreamDesign, parts: int) -> Iterator[tuple[str, Floats]]:
    """Every split of `parts` among the stages that have blocks."""
    counts = [len(stage.channels) for stage in design.stages if stage.channels]
    for cuts in combinations(range(1, max(parts, len(counts))), len(counts) - 1):
        split = np.diff([0, *cuts, max(parts, len(counts))])
        shares = np.concatenate([np.full(count, part / count) for part, count in zip(split, counts, strict=True)])
        yield ":".join(map(str, split)), shares
