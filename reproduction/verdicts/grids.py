"""Verdicts on where the reduce cells go, by whole grids: every placement of a depth trained alone, by equal settings.

choice       Algorithm 1 takes the best placement. Its searches count in the released form, with the paper's
             temperature. One finds the best where what it takes is not shown to be worse than the grid's best, or is
             the paper's choice; one in doubt decides nothing. Reproduced needs two depths. Those with rivals by
             probability are judged apart, by the same rule
early        placements that reduce first at 0 or 1 beat the others: mean against mean, each grid for itself, with
             the smallest difference for these numbers of networks
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reproduction.deviation import Deviation, Deviations
from reproduction.experiments import read_rows
from reproduction.kept_searches import KeptPlacement
from reproduction.outcomes import Outcome
from reproduction.verdicts.verdict import (
    Difference,
    Settings,
    Verdict,
    by_settings,
    difference,
    judge_differences,
    printed_difference,
    runs_of,
    tell_epochs,
    tell_spread,
)

EARLY = (0, 1)  # where the first reduction of an early placement is
LEAST_DEPTHS = 2
Placement = tuple[int, ...]


@dataclass(frozen=True)
class Grid:
    """One depth: the accuracies of every placement's runs by equal settings, and what the paper takes."""

    channels: int
    depth: int
    settings: Settings
    accuracies: dict[Placement, list[float]]
    printed: dict[Placement, float | None]  # in the paper
    papers: Placement
    deviation: Deviation

    def mean(self, place: Placement) -> float:
        return statistics.fmean(self.accuracies[place])

    @property
    def best(self) -> Placement:
        return max(self.accuracies, key=self.mean)

    def has(self, search: KeptPlacement) -> bool:
        return (search.channels, search.depth) == (self.channels, self.depth) and search.best in self.accuracies

    def holds(self, place: Placement) -> bool:
        """Return whether Algorithm 1 may take it: the paper does, or it is not shown to be worse than the best."""
        n, m = len(self.accuracies[place]), len(self.accuracies[self.best])
        gap = self.mean(self.best) - self.mean(place)
        return place == self.papers or gap < self.deviation.smallest_difference(n, m)


def judge_choice(
    outcomes: Sequence[Outcome],
    placements: Sequence[KeptPlacement],
    deviations: Deviations,
    rivals: str = "uniform",
) -> Verdict:
    counted = [search for search in placements if search.counts(rivals)]
    if not counted:
        return Verdict("undecided", ("no search of this form with the paper's temperature was kept",))
    judged, told = [], []
    grids = list(_find_whole_grids(outcomes, deviations))
    for search in counted:
        own = [(search, grid) for grid in grids if grid.has(search)]
        told += [_tell_choice(search, grid) for _, grid in own] or [_tell_unjudged(search, outcomes)]
        judged += own
    findings = (*told, *tell_spread(grid.deviation for _, grid in judged))
    extent = tell_epochs(grid.settings for _, grid in judged)
    certain = [(search, grid) for search, grid in judged if not search.doubt]
    if any(not grid.holds(search.best) for search, grid in certain):
        return Verdict("not reproduced", findings, extent)
    depths = {search.depth for search, _ in certain}
    return Verdict("reproduced" if len(depths) >= LEAST_DEPTHS else "undecided", findings, extent)


def judge_early(outcomes: Sequence[Outcome], deviations: Deviations) -> Verdict:
    grids = list(_find_whole_grids(outcomes, deviations))
    if not grids:
        return Verdict("undecided", ("no grid is whole: each has placements that were not trained",))
    verdict = judge_differences([_compare_early(grid) for grid in grids])
    depths, whole = ({outcome.row.depth for outcome in outcomes}, {grid.depth for grid in grids})
    partly = [f"at {len(whole)} of {len(depths)} depths"] if whole < depths else []
    extent = " ".join(filter(None, [*partly, tell_epochs(grid.settings for grid in grids)]))
    findings = verdict.findings + tell_spread(grid.deviation for grid in grids)
    return replace(verdict, findings=findings, extent=extent)


def _compare_early(grid: Grid) -> Difference:
    early = [place for place in grid.accuracies if place[0] in EARLY]
    later = [place for place in grid.accuracies if place[0] not in EARLY]
    return difference(
        f"D={grid.depth}, first reduction at 0 or 1 against later",
        [grid.mean(place) for place in early],
        [grid.mean(place) for place in later],
        grid.deviation,
        printed_difference((grid.printed[place] for place in early), (grid.printed[place] for place in later)),
    )


def _find_whole_grids(outcomes: Sequence[Outcome], deviations: Deviations) -> Iterator[Grid]:
    """Yield a grid for each depth and settings by which all of its placements were trained."""
    for channels, depth in dict.fromkeys((o.row.channels, o.row.depth) for o in outcomes):
        own = [o for o in outcomes if (o.row.channels, o.row.depth) == (channels, depth)]
        rows = {o.row.reduce_at or (): o.row for o in own}
        printed = {place: row.accuracy for place, row in rows.items()}
        papers = papers_choice(channels, depth)
        for settings in dict.fromkeys(ours.differs for _, ours in runs_of(own)):
            found = {o.row.reduce_at or (): by_settings(o.kept).get(settings, []) for o in own}
            if all(found.values()):
                deviation = deviations.at(own[0].row.data, settings)
                yield Grid(channels, depth, settings, found, printed, papers, deviation)


def papers_choice(channels: int, depth: int) -> Placement:
    """Return the placement to which the paper's search gives the largest probability."""
    own = [row for row in read_rows() if row.beta is not None and (row.channels, row.depth) == (channels, depth)]
    return max(own, key=lambda row: row.beta or 0.0).reduce_at or ()


def _tell_choice(search: KeptPlacement, grid: Grid) -> str:
    place, best = search.best, grid.best
    shown = grid.deviation.smallest_difference(len(grid.accuracies[place]), len(grid.accuracies[best]))
    took = f"{search.name} takes {_name_of(place)} ({grid.mean(place):.2f})"
    beside = f"the grid's best is {_name_of(best)} ({grid.mean(best):.2f}; {shown:.2f} would show)"
    return f"{took}, {beside}{_tell_doubt(search)}"


def _tell_unjudged(search: KeptPlacement, outcomes: Sequence[Outcome]) -> str:
    """Tell of a search without a whole grid, or one whose choice the grid does not have."""
    own = [o for o in outcomes if (o.row.channels, o.row.depth) == (search.channels, search.depth)]
    used = dict.fromkeys(ours.differs for _, ours in runs_of(own))
    most = max((sum(settings in by_settings(o.kept) for o in own) for settings in used), default=0)
    beside = f"{most} of the {len(own)} placements of its grid were trained"
    return f"{search.name} takes {_name_of(search.best)}, which is not judged, as {beside}{_tell_doubt(search)}"


def _tell_doubt(search: KeptPlacement) -> str:
    return f", and is in doubt: {search.doubt}" if search.doubt else ""


def _name_of(place: Placement) -> str:
    return f"({','.join(map(str, place))})"
