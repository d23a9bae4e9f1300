"""What our kept runs say about a claim of the paper: reproduced, not reproduced, undecided, or not run.

A claim that one kind of network beats another is judged by pairs: networks of equal label in two series, both trained
by equal settings, whatever these are. A claim about accuracies is judged by runs in the paper's own settings only. A
difference smaller than SPREAD, what seeds alone make, decides nothing.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from sphynx.report.paper.experiments import Experiment
from sphynx.report.paper.outcomes import Ours, Outcome

Word = Literal["reproduced", "not reproduced", "undecided", "not run"]
SPREAD = 0.7  # points; the sample deviation over three seeds of one of our networks is 0.25


@dataclass(frozen=True)
class Verdict:
    word: Word
    why: str

    def to_json(self) -> dict[str, str]:
        return {"verdict": self.word, "why": self.why}


def verdict_on(experiment: Experiment, outcomes: Sequence[Outcome]) -> Verdict:
    if not any(True for _ in _runs(outcomes)):
        return Verdict("not run", "none of its networks was trained here")
    series = list(dict.fromkeys(outcome.row.series for outcome in outcomes))
    if experiment.picture == "bars" and len(series) > 1:
        return _of_pairs(outcomes, series)
    return _of_accuracies(outcomes)


def _of_pairs(outcomes: Sequence[Outcome], series: Sequence[str]) -> Verdict:
    """The first series is the one that the paper puts ahead."""
    gains: list[tuple[str, float]] = []
    for other in series[1:]:
        for better in (outcome for outcome in outcomes if outcome.row.series == series[0]):
            worse = [o for o in outcomes if (o.row.series, o.row.label) == (other, better.row.label)]
            for settings, ahead in _by_settings(_runs([better])).items():
                behind = _by_settings(_runs(worse)).get(settings)
                if behind:
                    gains.append((f"{better.row.label}, {series[0]} against {other}", ahead - behind))
    if not gains:
        return Verdict("not run", "no two networks that it compares were trained by equal settings")
    told = "; ".join(f"{what}: {gain:+.2f} points" for what, gain in gains)
    if all(gain >= SPREAD for _, gain in gains):
        return Verdict("reproduced", told)
    if any(gain <= -SPREAD for _, gain in gains):
        return Verdict("not reproduced", told)
    return Verdict("undecided", f"{told}; less than {SPREAD} points is within what seeds make")


def _of_accuracies(outcomes: Sequence[Outcome]) -> Verdict:
    exact = [(outcome, ours) for outcome, ours in _runs(outcomes) if not ours.differs]
    if not exact:
        trained = len({outcome.row.label for outcome, _ in _runs(outcomes)})
        networks = "one of its networks was" if trained == 1 else f"{trained} of its networks were"
        return Verdict("undecided", f"{networks} trained, none in the paper's own setting")
    told = "; ".join(f"{o.row.label}: {ours.accuracy:.2f} (paper {o.row.accuracy:.2f})" for o, ours in exact)
    if all(abs(ours.accuracy - outcome.row.accuracy) <= SPREAD for outcome, ours in exact):
        missing = len({outcome.row.label for outcome in outcomes} - {outcome.row.label for outcome, _ in exact})
        return Verdict("reproduced", told) if not missing else Verdict("undecided", f"{told}; {missing} not run so")
    return Verdict("not reproduced", told)


def _runs(outcomes: Iterable[Outcome]) -> Iterator[tuple[Outcome, Ours]]:
    for outcome in outcomes:
        for ours in outcome.kept:
            yield outcome, ours


def _by_settings(runs: Iterable[tuple[Outcome, Ours]]) -> Mapping[tuple[str, ...], float]:
    """Mean accuracy over the seeds of equal settings."""
    found: dict[tuple[str, ...], list[float]] = {}
    for _, ours in runs:
        found.setdefault(ours.differs, []).append(ours.accuracy)
    return {settings: statistics.fmean(values) for settings, values in found.items()}
