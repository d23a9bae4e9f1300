"""How long the stages of a design take by what was measured (`timing`), and schedules that fit a time budget.

An estimate is runs x (seconds per epoch x epochs + seconds at its end: evaluation, files, a figure), summed over the
rounds of a ranking. Start-up and checkpoints are not counted, for which a fit keeps a margin.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sphynx.errors import InputError
from sphynx.record import Record
from sphynx.search.ranking import Round, rounds
from sphynx.units import duration

MARGIN = 0.9  # the share of a time budget that is given out
STEPS = 1000  # in which the factor that fits is looked for


@dataclass(frozen=True)
class Estimate(Record):
    stage: str
    epoch_seconds: float
    epochs: int
    least_epochs: int  # fewer would not be a schedule
    runs: int = 1
    drawn: int = 0  # of the runs: they go in rounds, and few of them have all `epochs`
    end_seconds: float = 0.0  # of every run, after its last epoch

    @property
    def rounds(self) -> tuple[Round, ...]:
        return rounds(self.drawn, self.runs - self.drawn, self.epochs, self.least_epochs)

    @property
    def seconds(self) -> float:
        return sum(one.runs * (one.epochs * self.epoch_seconds + self.end_seconds) for one in self.rounds)

    @property
    def least(self) -> Estimate:
        return replace(self, epochs=self.least_epochs)


def fit(estimates: Sequence[Estimate], budget_seconds: float, remedy: str) -> tuple[Estimate, ...]:
    """All epochs scaled by the largest common factor up to 1 that fits, none below its least."""
    refuse_too_little(estimates, budget_seconds, remedy)

    def scaled(factor: float) -> tuple[Estimate, ...]:
        return tuple(replace(e, epochs=max(e.least_epochs, math.floor(e.epochs * factor))) for e in estimates)

    def fits(factor: float) -> bool:
        return sum(e.seconds for e in scaled(factor)) <= MARGIN * budget_seconds

    # Tried from above, since a slightly longer ranking can take less: it may have one round more.
    return scaled(next(step / STEPS for step in range(STEPS, -1, -1) if fits(step / STEPS)))


def refuse_too_little(
    estimates: Sequence[Estimate], budget_seconds: float, remedy: str, *, others: Sequence[str] = ()
) -> None:
    """Refuses a budget that the smallest schedule exceeds, be it without `others`, which are not timed yet."""
    needed = sum(e.least.seconds for e in estimates) / MARGIN
    if needed <= budget_seconds:
        return
    shortest = ", ".join(f"{e.stage} {e.least_epochs} epochs x {e.runs}" for e in estimates)
    untimed = f", without {' and '.join(others)}" if others else ""
    raise InputError(
        f"the smallest schedule ({shortest}) takes about {duration(needed)} on this device{untimed}; "
        f"{duration(budget_seconds)} of the time budget is left for it",
        where="`time_budget`",
        remedy=remedy,
    )


def parse_duration(text: str) -> float:
    """Seconds of `90s`, `15m`, `1h30m`."""
    number = r"(\d+(?:\.\d+)?)"
    match = re.fullmatch(rf"\s*(?:{number}\s*h)?\s*(?:{number}\s*m)?\s*(?:{number}\s*s)?\s*", text.lower())
    seconds = (
        sum(float(part or 0) * unit for part, unit in zip(match.groups(), (3600, 60, 1), strict=True)) if match else 0
    )
    if seconds <= 0:
        raise InputError(
            f"{text!r} is not a valid time", where="`time_budget`", remedy="Write it as 90s, 15m or 1h30m."
        )
    return seconds
