"""One kind of network beats another: networks of equal label in two series, both trained by equal settings.

Some pairs decide nothing, and the verdict says why: random cells of which not all that are listed were trained; cells
of our own search that stand for the paper's and lose, as a poor search's lose to any; searches of our own, or students
of several teachers, of which some win and others lose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from reproduction.deviation import Deviation, Deviations
from reproduction.kept_searches import RankedCells
from reproduction.outcomes import RANDOM, SEARCHED, Outcome, without_reading
from reproduction.verdicts.verdict import (
    NO_TWO,
    Difference,
    Settings,
    Verdict,
    by_settings,
    difference,
    judge_differences,
    printed_difference,
    tell_epochs,
    tell_spread,
)

DARTS = ("darts", "darts-unrolled", "darts-2nd")


@dataclass(frozen=True)
class Pair:
    """A network beside those of another series and the same label, all trained by equal settings."""

    better: Outcome
    worse: tuple[Outcome, ...]  # with all their runs; those of these settings are compared
    settings: Settings
    found: Difference
    deviation: Deviation


def judge_pairs(outcomes: Sequence[Outcome], ahead: str, deviations: Deviations) -> Verdict:
    pairs = list(_find_pairs(outcomes, ahead, deviations))
    if not pairs:
        return NO_TWO
    verdict = judge_differences([pair.found for pair in pairs])
    findings = verdict.findings + tell_spread(pair.deviation for pair in pairs)
    extent = " ".join(filter(None, [_tell_sizes(outcomes, ahead, pairs), tell_epochs(pair.settings for pair in pairs)]))
    if weakness := _find_weakness(pairs):
        return Verdict("undecided", (*findings, weakness), extent)
    return replace(verdict, findings=findings, extent=extent)


def _find_pairs(outcomes: Sequence[Outcome], ahead: str, deviations: Deviations) -> Iterator[Pair]:
    for better, worse in _find_rivals(outcomes, ahead):
        behind = by_settings(ours for outcome in worse for ours in outcome.kept)
        for settings, found_by, accuracies in _split_networks(better):
            compared = behind.get(without_reading(settings))
            if compared:
                what = f"{better.row.label}, {ahead}{found_by} against {worse[0].row.series}"
                deviation = deviations.at(better.row.data, settings)
                paper = printed_difference([better.row.accuracy], (outcome.row.accuracy for outcome in worse))
                found = difference(what, accuracies, compared, deviation, paper)
                yield Pair(better, worse, settings, found, deviation)


def _find_rivals(outcomes: Sequence[Outcome], ahead: str) -> Iterator[tuple[Outcome, tuple[Outcome, ...]]]:
    """Yield each network of the series ahead with those of its label in each other series."""
    for other in dict.fromkeys(outcome.row.series for outcome in outcomes if outcome.row.series != ahead):
        for better in (outcome for outcome in outcomes if outcome.row.series == ahead):
            worse = tuple(o for o in outcomes if (o.row.series, o.row.label) == (other, better.row.label))
            if worse:
                yield better, worse


def _split_networks(outcome: Outcome) -> Iterator[tuple[Settings, str, list[float]]]:
    """Yield settings, which training it was where the row has several networks, and the seeds' accuracies."""
    for key in dict.fromkeys(ours.network_key for ours in outcome.kept):
        runs = [ours for ours in outcome.kept if ours.network_key == key]
        found_by = f" ({runs[0].folders[0]})" if outcome.has_several_networks else ""
        for settings, accuracies in by_settings(runs).items():
            yield settings, found_by, accuracies


def _find_weakness(pairs: Sequence[Pair]) -> str:
    """Say why the pairs decide nothing; empty where they do."""
    if any(pair.found.wins for pair in pairs) and any(pair.found.loses for pair in pairs):
        if pairs[0].better.row.cells.startswith(SEARCHED):
            return "our searches disagree"
        if any(pair.better.row.distilled for pair in pairs):
            return "our students disagree"
    return next(filter(None, map(_find_weakness_of, pairs)), "")


def _find_weakness_of(pair: Pair) -> str:
    cells, listed = pair.worse[0].row.cells, len(pair.worse)
    if cells.startswith(RANDOM):
        drawn = sum(without_reading(pair.settings) in by_settings(outcome.kept) for outcome in pair.worse)
        return f"{drawn} of {listed} random cells were trained" if drawn < listed else ""
    if cells.startswith(SEARCHED) and pair.found.points > 0:
        return f"those of {pair.worse[0].row.series} are of our own search, which may have missed better ones"
    return ""


def _tell_sizes(outcomes: Sequence[Outcome], ahead: str, pairs: Sequence[Pair]) -> str:
    """Say at how many of the claim's sizes there is a pair, where not at all of them."""
    compared = {pair.better.row.label for pair in pairs}
    sizes = {better.row.label for better, _ in _find_rivals(outcomes, ahead)}
    return f"at {len(compared)} of {len(sizes)} sizes" if len(compared) < len(sizes) else ""


def judge_rankings(cells: str, rankings: Sequence[RankedCells], deviation: Deviation) -> Verdict:
    """Compare each entry with the mean of the random ones that were trained as long."""
    wanted = DARTS if cells.startswith(SEARCHED) else (cells,)
    random: dict[str, list[float]] = {}
    for entry in rankings:
        if entry.cells.startswith("random-"):
            random.setdefault(entry.settings, []).append(entry.accuracy)
    found = [
        difference(f"{entry.label} against random cells ({entry.settings})", [entry.accuracy], behind, deviation)
        for entry in rankings
        if entry.cells in wanted and (behind := random.get(entry.settings))
    ]
    if not found:
        return NO_TWO
    verdict = judge_differences(found)
    return replace(verdict, findings=verdict.findings + tell_spread([deviation]))
