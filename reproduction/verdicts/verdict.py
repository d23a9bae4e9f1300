"""A verdict and what it is made of: networks by equal settings, differences beside what their runs can show."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from reproduction.deviation import Deviation
from reproduction.outcomes import Ours, Outcome

Word = Literal["reproduced", "not reproduced", "undecided", "not run"]
Settings = tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    word: Word
    findings: tuple[str, ...]  # why
    extent: str = ""  # how much of the claim was compared, where not all of it

    @property
    def told(self) -> str:
        return "; ".join(filter(None, [*self.findings, self.extent]))


NO_TWO = Verdict("not run", ("no two networks that it compares were trained with equal settings",))


@dataclass(frozen=True)
class Difference:
    """A difference between two means, of n and of m runs, beside the smallest that these show."""

    what: str
    points: float
    n: int
    m: int
    smallest: float
    paper: float | None = None  # the paper's own, where it prints both sides

    @property
    def wins(self) -> bool:
        return self.points >= self.smallest

    @property
    def loses(self) -> bool:
        return self.points <= -self.smallest

    @property
    def told(self) -> str:
        paper = "" if self.paper is None else f"paper {self.paper:+.2f}; "
        return f"{self.what}: {self.points:+.2f} points ({paper}n={self.n} and {self.m} show {self.smallest:.2f})"


def difference(
    what: str, ahead: Sequence[float], behind: Sequence[float], deviation: Deviation, paper: float | None = None
) -> Difference:
    n, m = len(ahead), len(behind)
    points = statistics.fmean(ahead) - statistics.fmean(behind)
    return Difference(what, points, n, m, deviation.smallest_difference(n, m), paper)


def printed_difference(ahead: Iterable[float | None], behind: Iterable[float | None]) -> float | None:
    """Subtract the means of what the paper prints; None where it leaves one out."""
    sides = [list(ahead), list(behind)]
    if any(value is None for side in sides for value in side):
        return None
    means = [statistics.fmean(value for value in side if value is not None) for side in sides]
    return means[0] - means[1]


def judge_differences(found: Sequence[Difference]) -> Verdict:
    """Judge reproduced where each is large enough; not where one is as large in the other direction."""
    told = tuple(one.told for one in found)
    if all(one.wins for one in found):
        return Verdict("reproduced", told)
    return Verdict("not reproduced" if any(one.loses for one in found) else "undecided", told)


def runs_of(outcomes: Iterable[Outcome]) -> Iterator[tuple[Outcome, Ours]]:
    for outcome in outcomes:
        for ours in outcome.kept:
            yield outcome, ours


def by_settings(runs: Iterable[Ours]) -> dict[Settings, list[float]]:
    """Group the runs' accuracies by equal settings."""
    found: dict[Settings, list[float]] = {}
    for ours in runs:
        found.setdefault(ours.differs, []).append(ours.accuracy)
    return found


def tell_epochs(used: Iterable[Settings]) -> str:
    """Say how long the compared networks were trained, where not as long as the paper's."""
    found = {text.removeprefix("epochs ") for settings in used for text in settings if text.startswith("epochs ")}
    return f"after {' and '.join(sorted(found, key=int))} epochs" if found else ""


def tell_spread(deviations: Iterable[Deviation]) -> tuple[str, ...]:
    """Tell the deviations between seeds that smallest differences follow from, and of which settings they are."""
    told = []
    for one in dict.fromkeys(deviations):
        whose = "of all settings" if one.of_all_settings else "by these settings"
        told.append(f"deviation between seeds {whose}: {one.points:.2f} ({one.degrees} degrees of freedom)")
    return tuple(told)
