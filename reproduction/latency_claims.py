"""The paper's statements about its latency columns, computed again from these columns.

The columns themselves are DELPHI's on the paper's machines, which was not run here. A statement agrees where the
printed latencies, rounded or cut to its digits, give it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from sphynx.report.literature import Published, read_published


@dataclass(frozen=True)
class LatencyClaim:
    statement: str
    source: str
    printed: float
    ours: float  # from the columns, in the unit of the statement
    digits: int = 0  # behind the point that the statement has
    unit: str = ""

    @property
    def agrees(self) -> bool:
        scale = 10**self.digits
        exact, wanted = self.ours * scale, round(self.printed * scale)
        return wanted in (math.floor(exact), math.floor(exact + 0.5))

    @property
    def told(self) -> str:
        word = "agrees" if self.agrees else "differs"
        return f"{self.statement} ({self.source}): {self.ours:.{self.digits + 1}f}{self.unit} by the columns, {word}"


def latency_claims() -> list[LatencyClaim]:
    section, appendix = "section 5.2", "appendix G"
    smallest = _seconds("Sphynx", 25_600)
    deepreduce = _seconds("DeepReDuce", 24_600)
    twice = sorted({_milliseconds(row) for row in _rows("Sphynx") if row.relus == 40_960})
    return [
        LatencyClaim(
            "2.3 times as fast as CryptoNAS with 63.60 %", section, 2.3, _seconds("CryptoNAS", 50_000) / smallest, 1
        ),
        LatencyClaim(
            "1.7 times as fast as DELPHI with 66.00 %", section, 1.7, _seconds("DELPHI", 50_000) / smallest, 1
        ),
        LatencyClaim(
            "2.6 times as fast as SAFENet", section, 2.6, _seconds("SAFENet", None) / _seconds("Sphynx", 30_720), 1
        ),
        LatencyClaim("25 % slower than DeepReDuce of 24.6K", section, 25, 100 * (smallest / deepreduce - 1), unit=" %"),
        LatencyClaim(
            "117 ms slower than DeepReDuce of 24.6K", appendix, 117, 1000 * (smallest - deepreduce), unit=" ms"
        ),
        LatencyClaim("1105 ms for 41.0K, in its second table too", appendix, twice[0], twice[-1], unit=" ms"),
        LatencyClaim("90K ReLUs take roughly 2 s", "section 3", 2, _between(90_000), unit=" s"),
    ]


def _between(relus: int) -> float:
    """Interpolate the seconds of the paper's CIFAR-100 networks."""
    known = sorted({(row.relus, row.latency_s) for row in _rows("Sphynx") if row.relus and row.latency_s})
    below = max(pair for pair in known if pair[0] <= relus)
    above = min(pair for pair in known if pair[0] > relus)
    return below[1] + (above[1] - below[1]) * (relus - below[0]) / (above[0] - below[0])


def _seconds(method: str, relus: int | None) -> float:
    return next(row.latency_s for row in _rows(method) if row.relus == relus and row.latency_s is not None)


def _milliseconds(row: Published) -> float:
    assert row.latency_s is not None
    return round(1000 * row.latency_s)


def _rows(method: str) -> list[Published]:
    return [row for row in read_published() if (row.data, row.method) == ("cifar100", method) and row.latency_s]
