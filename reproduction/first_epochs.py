"""Explain why released-form DARTS keeps skips alone: by the cells of its first epoch and the width of the supernet.

The rules are in docs/results/rules.md. The width does it where no narrower supernet has more skips than a wider one and
the narrowest has fewer than the widest; convolutions that had not learned yet are the cause where a wide supernet whose
w learned alone for some epochs keeps CONVOLUTIONS_KEPT of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from reproduction.kept_searches import CONVOLUTIONS
from sphynx.search.supernet.cellspace import CellSpace
from sphynx.space.json_file import read_json

CONVOLUTIONS_KEPT = 3  # that C=5 keeps without waiting
NODES = 7


@dataclass(frozen=True)
class FirstEpoch:
    """The normal cell after the first epoch in which the architecture learned."""

    name: str
    channels: int
    seed: int
    waited: int  # epochs in which w learned alone
    skips: int
    convolutions: int
    lead: float | None  # the share of skip less that of a convolution, mean over edges; where it was kept


def read_first_epochs(folder: Path) -> list[FirstEpoch]:
    found = []
    for file in sorted(folder.glob("darts-*.json")):
        data = read_json(file)
        config, rows = data["config"], data["metrics"]
        recipe = config["recipe"]
        if (recipe.get("supernet"), recipe["nodes"], config["strategy"]) != ("released", NODES, "darts-unrolled"):
            continue
        waited = int(recipe["warmup"] * recipe["epochs"])
        if len(rows) <= waited:
            continue
        row = rows[waited]
        lead = _find_lead(data["strengths"]["normal"]) if len(rows) == waited + 1 else None
        found.append(
            FirstEpoch(
                file.stem, recipe["channels"], config["seed"], waited, row["skips"], row["convolutions"][0], lead
            )
        )
    return sorted(found, key=lambda one: (one.channels, one.waited, one.name))


def _find_lead(shares: Sequence[Sequence[float]]) -> float:
    names = CellSpace(NODES).candidates
    skip = statistics.fmean(edge[names.index("skip")] for edge in shares)
    return skip - statistics.fmean(edge[names.index(name)] for edge in shares for name in CONVOLUTIONS)


def judge_width(found: Sequence[FirstEpoch]) -> bool:
    at_once = [one for one in found if not one.waited]
    narrowest, widest = min(one.channels for one in at_once), max(one.channels for one in at_once)
    in_order = all(
        narrow.skips <= wide.skips for narrow, wide in combinations(at_once, 2) if narrow.channels < wide.channels
    )
    fewest = max(one.skips for one in at_once if one.channels == narrowest)
    return in_order and fewest < min(one.skips for one in at_once if one.channels == widest)


def judge_waiting(found: Sequence[FirstEpoch]) -> str:
    kept = [one.convolutions for one in found if one.waited]
    if all(number >= CONVOLUTIONS_KEPT for number in kept):
        return "are the cause"
    return "are not the cause" if not any(kept) else "may be a part of the cause: undecided"


def write_first_epochs(found: Sequence[FirstEpoch]) -> Iterator[str]:
    if not any(one.waited for one in found) or len({one.channels for one in found}) < 2:
        return
    yield "Why skips: the eight edges of the normal cell after the first epoch in which the architecture learned, by"
    yield "width (released form; the lead is the share of `skip` less that of a convolution, mean over all edges, where"
    yield "1/7 is uniform):\n"
    yield "| file | C | seed | epochs of w alone before | skips | convolutions | lead of skip |"
    yield "|---|---|---|---|---|---|---|"
    for one in found:
        lead = "-" if one.lead is None else f"{one.lead:.4f}"
        yield f"| {one.name} | {one.channels} | {one.seed} | {one.waited} | {one.skips} | {one.convolutions} | {lead} |"
    width = "The width does it" if judge_width(found) else "The width alone does not explain it"
    yield f"\n{width}; convolutions that had not learned yet {judge_waiting(found)} ([rules](rules.md)).\n"
