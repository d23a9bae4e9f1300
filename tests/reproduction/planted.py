"""Outcomes and a deviation between seeds that tests of verdicts plant."""

from __future__ import annotations

from collections.abc import Sequence

from reproduction.deviation import Deviations, Repeated
from reproduction.experiments import EXPERIMENTS, Experiment
from reproduction.kept_searches import KeptPlacement, RankedCells
from reproduction.outcomes import Ours, Outcome
from reproduction.verdicts import Verdict
from reproduction.verdicts import verdict_on as verdict_beside

from sphynx.report.provenance import provenance

Found = dict[tuple[str, str], tuple[Ours, ...]]
# A deviation of 0.25 between a hundred seeds: one run beside another shows 0.71 points, four beside four 0.35.
DEVIATIONS = Deviations([Repeated("cifar100", ("epochs 1",), (60.0, 60.5) * 50)])


def verdict_on(
    experiment: Experiment,
    found: list[Outcome],
    placements: Sequence[KeptPlacement] = (),
    rankings: Sequence[RankedCells] = (),
) -> Verdict:
    return verdict_beside(experiment, found, DEVIATIONS, placements, rankings)


def ours(accuracy: float, *differs: str) -> Ours:
    epochs = next((int(text.removeprefix("epochs ")) for text in differs if text.startswith("epochs ")), 600)
    return Ours("C=5 D=5", "cifar100", 25_600, accuracy, None, 1, epochs, provenance({}, {}), differs=differs)


def outcomes(name: str, found: Found) -> list[Outcome]:
    rows = EXPERIMENTS[name].rows
    assert set(found) <= {(row.series, row.label) for row in rows}
    return [Outcome(row, None, kept=found.get((row.series, row.label), ())) for row in rows]
