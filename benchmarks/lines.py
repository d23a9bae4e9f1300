"""How private latency and traffic grow with the number of ReLUs: least-squares lines through measured rows.

    seconds = intercept_s + s_per_relu * ReLUs

for online, offline and both together, per ReLU protocol and link. The networks differ in more than their ReLUs (wider
ones have more arithmetic per ReLU), so `r_squared` says how much of the growth the ReLUs explain, not why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sphynx.bench.results import BenchRow, LineFit

PHASES: dict[str, Callable[[BenchRow], float]] = {
    "online": lambda row: row.online_s,
    "offline": lambda row: row.offline_s,
    "total": lambda row: row.offline_s + row.online_s,
}


@dataclass(frozen=True)
class Line:
    intercept: float
    slope: float
    r_squared: float

    def at(self, x: float) -> float:
        return self.intercept + self.slope * x


def fit_line(x: Sequence[float], y: Sequence[float]) -> Line:
    """Needs two different x."""
    across, up = np.asarray(x, float), np.asarray(y, float)
    slope, intercept = np.polyfit(across, up, 1)
    unexplained = float(np.square(up - (intercept + slope * across)).sum())
    spread = float(np.square(up - up.mean()).sum())
    return Line(float(intercept), float(slope), 1 - unexplained / spread if spread else 1.0)


def fits(rows: Sequence[BenchRow]) -> tuple[LineFit, ...]:
    """A line for each ReLU protocol, link and phase."""
    return tuple(fit for own in _groups(rows) for fit in _fits_of(own))


def _groups(rows: Sequence[BenchRow]) -> Iterator[list[BenchRow]]:
    for backend, link in dict.fromkeys((row.backend, row.link) for row in rows):
        yield [row for row in rows if (row.backend, row.link) == (backend, link)]


def _fits_of(rows: list[BenchRow]) -> Iterator[LineFit]:
    relus = [row.relus * row.batch for row in rows]
    for phase, seconds in PHASES.items():
        line = fit_line(relus, [seconds(row) for row in rows])
        yield LineFit(
            backend=rows[0].backend,
            link=rows[0].link,
            phase=phase,
            intercept_s=line.intercept,
            s_per_relu=line.slope,
            r_squared=line.r_squared,
            networks=len(rows),
            smallest_relus=min(relus),
            largest_relus=max(relus),
        )
