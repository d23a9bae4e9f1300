"""Measure what Algorithm 1 saves over training every placement, in minutes.

The paper claims candidates / 2, on the assumption that a search takes as long as one training; it gives no times.
Minutes are of one seed, as the runs counted them, interruptions left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from reproduction.outcomes import Ours, Outcome


@dataclass(frozen=True)
class Saving:
    series: str
    candidates: int
    search_minutes: float  # of Algorithm 1, or of what the scale has in its place
    training_minutes: float  # of the placement that it chose
    grid_minutes: float  # of all placements

    @property
    def ratio(self) -> float:
        return self.grid_minutes / (self.search_minutes + self.training_minutes)

    @property
    def claimed_ratio(self) -> float:
        return self.candidates / 2

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio, "claimed_ratio_of_the_paper": self.claimed_ratio}


def savings(outcomes: Sequence[Outcome]) -> list[Saving]:
    """One for each depth whose placements were all trained and searched here."""
    found = []
    for series in dict.fromkeys(outcome.row.series for outcome in outcomes):
        own = [outcome.ours for outcome in outcomes if outcome.row.series == series]
        ran = [ours for ours in own if ours is not None and ours.search_minutes is not None]
        if ran and len(ran) == len(own):
            found.append(_saving(series, ran))
    return found


def _saving(series: str, ran: Sequence[Ours]) -> Saving:
    chosen = max(ran, key=lambda ours: ours.beta[-1])
    assert chosen.search_minutes is not None
    return Saving(series, len(ran), chosen.search_minutes, chosen.minutes, sum(ours.minutes for ours in ran))
