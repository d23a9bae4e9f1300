"""Accuracies as printed, and networks that are equally good.

accuracies   by runs in the paper's own setting alone, at their best test epoch where it was recorded, as the paper's
             code reads them; beside the paper's means of three seeds where it prints a deviation, else one run
flat         by the range of the accuracies: equally good where it is smaller than the smallest difference between
             two of the networks, not where it is twice that. After fewer than LEAST_EPOCHS it says how fast
             networks learn, and nothing is decided
"""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reproduction.deviation import Deviation, Deviations
from reproduction.outcomes import Ours, Outcome
from reproduction.verdicts.verdict import (
    NO_TWO,
    Difference,
    Settings,
    Verdict,
    by_settings,
    runs_of,
    tell_epochs,
    tell_spread,
)

PAPERS_SEEDS = 3
LEAST_EPOCHS = 200
# Batch 512 counts as the paper's setting, with or without the rate grown in proportion (docs/results/rules.md).
BATCH = "batch_size 512"
WITH_THE_BATCH = {BATCH, "learning_rate 0.1333", "schedule warmup-cosine", "warmup_epochs 5.0"}


@dataclass(frozen=True)
class Level:
    """A network in the paper's own setting beside the paper's accuracy."""

    outcome: Outcome
    told: str
    found: Difference
    deviation: Deviation


def judge_accuracies(outcomes: Sequence[Outcome], deviations: Deviations) -> Verdict:
    levels = list(_compare_levels(outcomes, deviations))
    if not levels:
        trained = len({outcome.row.label for outcome, _ in runs_of(outcomes)})
        networks = "one of its networks was" if trained == 1 else f"{trained} of its networks were"
        none_so = f"{networks} trained, none in the paper's own setting"
        return Verdict("undecided", (none_so, *_tell_what_one_would_show(outcomes, deviations)))
    told = (*(level.told for level in levels), *tell_spread(level.deviation for level in levels))
    if any(level.found.wins or level.found.loses for level in levels):
        return Verdict("not reproduced", told)
    missing = len({outcome.row.label for outcome in outcomes} - {level.outcome.row.label for level in levels})
    if missing:
        return Verdict("undecided", (*told, f"{missing} not run like this"))
    return Verdict("reproduced", told)


def _tell_what_one_would_show(outcomes: Sequence[Outcome], deviations: Deviations) -> Iterator[str]:
    if not deviations:
        return
    deviation = deviations.at(outcomes[0].row.data, ())
    yield f"n=1 and 1 would show {deviation.smallest_difference(1, 1):.2f}"
    yield from tell_spread([deviation])


def _compare_levels(outcomes: Sequence[Outcome], deviations: Deviations) -> Iterator[Level]:
    for outcome in outcomes:
        if outcome.row.accuracy is None:
            continue
        for settings in filter(in_the_papers_setting, dict.fromkeys(ours.differs for ours in outcome.kept)):
            runs = [ours for ours in outcome.kept if ours.differs == settings]
            deviation = deviations.at(outcome.row.data, settings)
            n, m = len(runs), 1 if outcome.row.std is None else PAPERS_SEEDS
            points = statistics.fmean(map(_read_as_printed, runs)) - outcome.row.accuracy
            found = Difference(outcome.row.label, points, n, m, deviation.smallest_difference(n, m))
            beside = f"paper {outcome.row.accuracy:.2f}; n={n} and {m} show {found.smallest:.2f}"
            batch = ", batch 512" if settings else ""
            told = f"{outcome.row.label}{batch}: {_tell_both_readings(runs)} ({beside})"
            yield Level(outcome, told, found, deviation)


def in_the_papers_setting(differs: Settings) -> bool:
    return not differs or (BATCH in differs and WITH_THE_BATCH.issuperset(differs))


def _read_as_printed(ours: Ours) -> float:
    return ours.accuracy if ours.best_epoch is None else ours.best_epoch


def _tell_both_readings(runs: Sequence[Ours]) -> str:
    last = statistics.fmean(ours.accuracy for ours in runs)
    if all(ours.best_epoch is None for ours in runs):
        return f"{last:.2f}"
    return f"{last:.2f} at the last epoch, {statistics.fmean(map(_read_as_printed, runs)):.2f} at the best"


def judge_range(outcomes: Sequence[Outcome], deviations: Deviations) -> Verdict:
    """Judge by the settings under which most of the networks were trained, the longest of these."""
    settings, most = _find_most_trained(outcomes)
    if len(most) < 2:
        return NO_TWO
    means = {outcome.row.label: statistics.fmean(by_settings(outcome.kept)[settings]) for outcome in most}
    wide = max(means.values()) - min(means.values())
    fewest = min(len(by_settings(outcome.kept)[settings]) for outcome in most)
    deviation = deviations.at(most[0].row.data, settings)
    smallest = deviation.smallest_difference(fewest, fewest)
    told = [
        ", ".join(f"{label}: {accuracy:.2f}" for label, accuracy in means.items()),
        f"range {wide:.2f} points (n={fewest} each show {smallest:.2f})",
        *tell_spread([deviation]),
        *_tell_order(most, means),
    ]
    missing = len({outcome.row.label for outcome in outcomes}) - len(most)
    told += [f"{missing} not run like this"] if missing else []
    extent = tell_epochs([settings])
    if _count_epochs(most, settings) < LEAST_EPOCHS:
        told += [f"fewer than {LEAST_EPOCHS} epochs measure how fast networks learn"]
        return Verdict("undecided", tuple(told), extent)
    if wide >= 2 * smallest:
        return Verdict("not reproduced", tuple(told), extent)
    return Verdict("reproduced" if wide < smallest and not missing else "undecided", tuple(told), extent)


def _find_most_trained(outcomes: Sequence[Outcome]) -> tuple[Settings, list[Outcome]]:
    trained = {
        settings: [outcome for outcome in outcomes if settings in by_settings(outcome.kept)]
        for settings in dict.fromkeys(ours.differs for _, ours in runs_of(outcomes))
    }
    return max(trained.items(), key=lambda entry: (len(entry[1]), _count_epochs(entry[1], entry[0])))


def _count_epochs(outcomes: Sequence[Outcome], settings: Settings) -> int:
    return min(ours.epochs for _, ours in runs_of(outcomes) if ours.differs == settings)


def _tell_order(outcomes: Sequence[Outcome], means: dict[str, float]) -> list[str]:
    printed = {o.row.label: o.row.accuracy for o in outcomes if o.row.accuracy is not None}
    if len(printed) < 3 or len(set(printed.values())) < 2:
        return []
    correlation = rank_correlation(list(printed.values()), [means[label] for label in printed])
    return [f"rank correlation with the paper's order: {correlation:+.1f}"]


def rank_correlation(first: Sequence[float], second: Sequence[float]) -> float:
    """Return Spearman's correlation, from -1 for the opposite order to 1 for the same."""
    return statistics.correlation(_rank(first), _rank(second))


def _rank(values: Sequence[float]) -> list[float]:
    """Number values by size; equal ones share the mean of their places."""
    return [sum(other < value for other in values) + sum(other == value for other in values) / 2 for value in values]
