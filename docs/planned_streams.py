"""Plans for stream networks as docs/results/stream.md names them: each stands there until its runs are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sphynx.space.stream import StreamDesign

Run = dict[str, Any]

HEADER = """## What was not run

Planned, with [rules](rules.md#stream-networks) that were written before. Minutes are estimates for one H200 by the
epochs of kept runs: 0.4 s for 25.6K alone, 1.13 s for three of them side by side (Muon), 1.9 s for 51.2K beside others,
1.8 s for 102.4K, 2.2 s for Tiny-ImageNet. Nothing here says how good these networks would be.

| runs | minutes |
|---|---|"""


class Kept(NamedTuple):
    trainings: Sequence[tuple[StreamDesign, Run]]
    comparisons: Sequence[Run]  # of allocations
    pipelines: Sequence[Run]  # of `sphynx design`


@dataclass(frozen=True)
class Plan:
    runs: str
    minutes: str
    is_kept: Callable[[Kept], bool]


def trained(
    thousands: float, seeds: int = 1, *, epochs: int = 0, data: str = "cifar100", optimizer: str = "muon"
) -> Callable[[Kept], bool]:
    """As many trainings on all images, of about as many ReLUs and at least as many epochs."""

    def is_it(design: StreamDesign, run: Run) -> bool:
        recipe, result = run["config"]["recipe"], run["result"]
        is_of_size = 0.98 < design.relus / (1000 * thousands) < 1.02
        is_alike = (result["data"], recipe["optimizer"]) == (data, optimizer) and not recipe["held_out"]
        return is_of_size and is_alike and result["epochs"] >= epochs

    return lambda kept: sum(is_it(*training) for training in kept.trainings) >= seeds


def allocated_by_price(thousands: float) -> Callable[[Kept], bool]:
    return lambda kept: any(
        one.get("prices", {}).get("counted") == "total" and 0.98 < one["relus"] / (1000 * thousands) < 1.02
        for one in kept.comparisons
    )


def designed(kept: Kept) -> bool:
    return any(one["result"].get("family") == "stream" for one in kept.pipelines)


PLANS = (
    Plan(
        "25.6K by Muon at 0.02 on all images, teacher as before, three seeds side by side, 400 epochs",
        "9",
        trained(25.6, 3),
    ),
    Plan("the same for 1,200 epochs, taught by several teachers together", "24", trained(25.6, 3, epochs=800)),
    Plan("12.7K in five blocks, by Muon, 600 to 1,000 epochs", "4 to 7", trained(12.7)),
    Plan("51.2K in five blocks, by Muon, 600 epochs", "19", trained(51.2)),
    Plan("102.4K by Muon, 400 epochs, taught by several teachers together", "13", trained(102.4)),
    Plan("`sphynx design --family stream` at 25.6K, from nothing", "9", designed),
    Plan(
        "allocations by total price at 25.6K: found, hand-made, uniform and random, three seeds",
        "9",
        allocated_by_price(25.6),
    ),
    Plan("the same at 51.2K", "18", allocated_by_price(51.2)),
    Plan(
        "Tiny-ImageNet: 300 epochs at 100K",
        "11, and more for a better teacher than the kept one, which took 7",
        trained(100, epochs=250, data="tiny-imagenet", optimizer="sgd"),
    ),
)


def not_run(kept: Kept) -> Iterator[str]:
    """Yield the part's lines, or none where every plan was run."""
    rows = [f"| {plan.runs} | {plan.minutes} |" for plan in PLANS if not plan.is_kept(kept)]
    if rows:
        yield from (HEADER, *rows, "")
