"""Judge what our kept runs say about a claim of the paper: reproduced, not reproduced, undecided, or not run.

    pairs        one kind of network beats another: networks of equal label in two series, both trained by equal
                 settings, whatever these are. Cells drawn at random count when all that are listed were trained.
                 Cells of our own search that stand for the paper's and lose decide nothing: a poor search's lose to
                 any. Searches of our own and students of several teachers are judged one by one; where some win and
                 others lose, nothing is decided. The paper's formula for distillation sums squares, its text has their
                 mean: a student by either counts
    flat         networks are equally good: the range of their accuracies, by equal settings
    choice       Algorithm 1 takes the best placement: its choice beside a grid in which every placement was trained by
                 equal settings. A search whose probabilities leave its choice in doubt decides nothing
    accuracies   as printed: runs in the paper's own settings only, by their best test epoch where it was recorded, as
                 the paper's code does

A difference smaller than SPREAD, what seeds alone make, decides nothing. Where no cells were trained beside random ones
in the paper's network, rankings of short trainings say what they can.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from reproduction.experiments import Experiment
from reproduction.kept_searches import KeptPlacement, RankedCells
from reproduction.outcomes import RANDOM, SEARCHED, Ours, Outcome, without_reading

Word = Literal["reproduced", "not reproduced", "undecided", "not run"]
SPREAD = 0.7  # points; the sample deviation over three seeds of one of our networks is 0.25

DARTS = ("darts", "darts-unrolled", "darts-2nd")


@dataclass(frozen=True)
class Verdict:
    word: Word
    why: str
    extent: str = ""  # how much of the claim was compared, where not all of it

    def to_json(self) -> dict[str, str]:
        return {"verdict": self.word, "why": self.told}

    @property
    def told(self) -> str:
        return f"{self.why}; {self.extent}" if self.extent else self.why


def verdict_on(
    experiment: Experiment,
    outcomes: Sequence[Outcome],
    placements: Sequence[KeptPlacement] = (),
    rankings: Sequence[RankedCells] = (),
) -> Verdict:
    judged = _of_trainings(experiment, outcomes, placements)
    beside_random = any(outcome.row.cells.startswith(RANDOM) for outcome in outcomes)
    if judged.word == "not run" and beside_random and rankings:
        return _of_rankings(outcomes[0].row.cells, rankings)
    return judged


def _of_trainings(experiment: Experiment, outcomes: Sequence[Outcome], placements: Sequence[KeptPlacement]) -> Verdict:
    if not any(True for _ in _runs(outcomes)):
        return Verdict("not run", "none of its networks was trained here")
    match experiment.judged:
        case "pairs":
            return _of_pairs(outcomes, experiment.ahead or outcomes[0].row.series)
        case "flat":
            return _of_range(outcomes)
        case "choice":
            return _of_choice(outcomes, placements)
        case "accuracies":
            return _of_accuracies(outcomes)


def _of_pairs(outcomes: Sequence[Outcome], ahead: str) -> Verdict:
    gains: list[tuple[str, float]] = []
    used: list[tuple[str, ...]] = []
    weak, compared, sizes = "", set(), set()
    for other in dict.fromkeys(outcome.row.series for outcome in outcomes if outcome.row.series != ahead):
        for better in (outcome for outcome in outcomes if outcome.row.series == ahead):
            worse = [o for o in outcomes if (o.row.series, o.row.label) == (other, better.row.label)]
            sizes |= {better.row.label} if worse else set()
            for settings, found_by, accuracy in _networks(better):
                behind = _by_settings(_runs(worse)).get(without_reading(settings))
                if not behind:
                    continue
                gains.append((f"{better.row.label}, {ahead}{found_by} against {other}", accuracy - behind))
                compared.add(better.row.label)
                used.append(settings)
                drawn = [o for o in worse if without_reading(settings) in _by_settings(_runs([o]))]
                if worse[0].row.cells.startswith(RANDOM) and len(drawn) < len(worse):
                    weak = f"; {len(drawn)} of {len(worse)} random cells were trained"
                if worse[0].row.cells.startswith(SEARCHED) and accuracy > behind:
                    weak = f"; those of {other} are of our own search, which may have missed better ones"
    verdict = _of_gains(gains)
    points = [gain for _, gain in gains]
    if points and min(points) <= -SPREAD and max(points) >= SPREAD:
        if outcomes[0].row.cells.startswith(SEARCHED):
            weak = "; our searches disagree"
        elif any(outcome.row.distilled for outcome in outcomes):
            weak = "; our students disagree"
    partly = [f"at {len(compared)} of {len(sizes)} sizes"] if gains and len(compared) < len(sizes) else []
    extent = " ".join([*partly, *filter(None, [_after(used)])])
    return Verdict("undecided", verdict.why + weak, extent) if weak else replace(verdict, extent=extent)


def _of_rankings(cells: str, rankings: Sequence[RankedCells]) -> Verdict:
    """Judge each entry against the mean of the random ones that were trained as long."""
    wanted = DARTS if cells.startswith(SEARCHED) else (cells,)
    random: dict[str, list[float]] = {}
    for entry in rankings:
        if entry.cells.startswith("random-"):
            random.setdefault(entry.settings, []).append(entry.accuracy)
    return _of_gains(
        [
            (f"{entry.label} against random cells ({entry.settings})", entry.accuracy - statistics.fmean(behind))
            for entry in rankings
            if entry.cells in wanted and (behind := random.get(entry.settings))
        ]
    )


def _of_gains(gains: Sequence[tuple[str, float]]) -> Verdict:
    if not gains:
        return Verdict("not run", "no two networks that it compares were trained with equal settings")
    told = "; ".join(f"{what}: {gain:+.2f} points" for what, gain in gains)
    if all(gain >= SPREAD for _, gain in gains):
        return Verdict("reproduced", told)
    if any(gain <= -SPREAD for _, gain in gains):
        return Verdict("not reproduced", told)
    return Verdict("undecided", f"{told}; less than {SPREAD} points is within the spread between seeds")


def _of_range(outcomes: Sequence[Outcome]) -> Verdict:
    """Judge by the settings under which most of the networks were trained."""
    used = list(dict.fromkeys(ours.differs for _, ours in _runs(outcomes)))
    trained = [
        {o.row.label: found[settings] for o in outcomes if settings in (found := _by_settings(_runs([o])))}
        for settings in used
    ]
    most = max(trained, key=len)
    if len(most) < 2:
        return Verdict("not run", "no two networks that it compares were trained with equal settings")
    wide = max(most.values()) - min(most.values())
    told = "; ".join(f"{label}: {accuracy:.2f}" for label, accuracy in most.items()) + f"; range {wide:.2f} points"
    extent = _after([used[trained.index(most)]])
    if wide > 2 * SPREAD:
        return Verdict("not reproduced", told, extent)
    missing = len({outcome.row.label for outcome in outcomes}) - len(most)
    if wide <= SPREAD and not missing:
        return Verdict("reproduced", told, extent)
    return Verdict("undecided", told + (f"; {missing} not run like this" if missing else ""), extent)


def _of_choice(outcomes: Sequence[Outcome], placements: Sequence[KeptPlacement]) -> Verdict:
    """Judge by searches in the released form, which is what gave the paper's figure: as printed, beta hardly learns."""
    judged: list[tuple[str, float, str]] = []
    used: list[tuple[str, ...]] = []
    for search in (search for search in placements if search.estimator == "released"):
        own = [o for o in outcomes if (o.row.channels, o.row.depth) == (search.channels, search.depth)]
        for settings in dict.fromkeys(ours.differs for _, ours in _runs(own)):
            grid = {o.row.reduce_at: found[settings] for o in own if settings in (found := _by_settings(_runs([o])))}
            if len(grid) == len(own) and search.best in grid:
                place = max(grid, key=lambda one: grid[one])
                told = f"D={search.depth}{search.waited}: it takes {_name_of(search.best)} ({grid[search.best]:.2f}), "
                told += "the grid's best "
                told += f"is {_name_of(place)} ({grid[place]:.2f})" + (f", but {search.doubt}" if search.doubt else "")
                judged.append((told, grid[place] - grid[search.best], search.doubt))
                used.append(settings)
    if not judged:
        return Verdict("undecided", "no search in the released form has a whole grid of equal settings to compare with")
    told = "; ".join(what for what, _, _ in judged)
    certain = [gap for _, gap, doubt in judged if not doubt]
    if not certain:
        return Verdict("undecided", told, _after(used))
    return Verdict("reproduced" if all(gap < SPREAD for gap in certain) else "not reproduced", told, _after(used))


def _after(used: Iterable[tuple[str, ...]]) -> str:
    """How long the compared networks were trained, where not as long as the paper's."""
    found = {text.removeprefix("epochs ") for settings in used for text in settings if text.startswith("epochs ")}
    return f"after {' and '.join(sorted(found, key=int))} epochs" if found else ""


def _name_of(place: Sequence[int] | None) -> str:
    return f"({','.join(map(str, place or ()))})"


def _of_accuracies(outcomes: Sequence[Outcome]) -> Verdict:
    exact = [(o, ours, o.row.accuracy) for o, ours in _runs(outcomes) if not ours.differs and o.row.accuracy]
    if not exact:
        trained = len({outcome.row.label for outcome, _ in _runs(outcomes)})
        networks = "one of its networks was" if trained == 1 else f"{trained} of its networks were"
        return Verdict("undecided", f"{networks} trained, none in the paper's own setting")
    told = "; ".join(f"{o.row.label}: {_both_readings(ours)} (paper {paper:.2f})" for o, ours, paper in exact)
    if all(abs(_as_printed(ours) - paper) <= SPREAD for _, ours, paper in exact):
        missing = len({outcome.row.label for outcome in outcomes} - {outcome.row.label for outcome, _, _ in exact})
        return (
            Verdict("reproduced", told) if not missing else Verdict("undecided", f"{told}; {missing} not run like this")
        )
    return Verdict("not reproduced", told)


def _as_printed(ours: Ours) -> float:
    return ours.accuracy if ours.best_epoch is None else ours.best_epoch


def _both_readings(ours: Ours) -> str:
    best = "" if ours.best_epoch is None else f" at the last epoch, {ours.best_epoch:.2f} at the best"
    return f"{ours.accuracy:.2f}{best}"


def _runs(outcomes: Iterable[Outcome]) -> Iterator[tuple[Outcome, Ours]]:
    for outcome in outcomes:
        for ours in outcome.kept:
            yield outcome, ours


def _networks(outcome: Outcome) -> Iterator[tuple[tuple[str, ...], str, float]]:
    """Settings, which training it was where the row has several networks, mean accuracy over the seeds."""
    for key in dict.fromkeys(ours.network_key for ours in outcome.kept):
        runs = tuple(ours for ours in outcome.kept if ours.network_key == key)
        found_by = f" ({runs[0].folders[0]})" if outcome.has_several_networks else ""
        for settings, accuracy in _by_settings(_runs([replace(outcome, kept=runs)])).items():
            yield settings, found_by, accuracy


def _by_settings(runs: Iterable[tuple[Outcome, Ours]]) -> Mapping[tuple[str, ...], float]:
    """Mean accuracy over the seeds of equal settings."""
    found: dict[tuple[str, ...], list[float]] = {}
    for _, ours in runs:
        found.setdefault(ours.differs, []).append(ours.accuracy)
    return {settings: statistics.fmean(values) for settings, values in found.items()}
