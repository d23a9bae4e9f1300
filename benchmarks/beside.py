"""Measured rows with their estimates and the rates of the machine meanwhile, as `benchmarks.estimates` keeps them."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphynx.bench.results import Machine, Source
from sphynx.program.backends import Backend
from sphynx.program.cost.rates import Rates
from sphynx.record import Record

STEADY = 0.1  # a smaller change of the machine's speed during a row counts as none


@dataclass(frozen=True)
class Beside(Record):
    """A measured row and its estimate. CPU seconds are those of both parties."""

    network: str
    backend: Backend
    link: str
    ot: str
    offline_s: float
    online_s: float
    offline_cpu_s: float
    estimated_offline_s: float
    estimated_online_s: float
    estimated_offline_cpu_s: float
    drift: float  # by how much the machine's speed changed from before the row until after it
    rates: Mapping[str, Any]

    @property
    def offline_ratio(self) -> float:
        return self.estimated_offline_s / self.offline_s

    @property
    def offline_cpu_ratio(self) -> float:
        return self.estimated_offline_cpu_s / self.offline_cpu_s

    @property
    def online_ratio(self) -> float:
        return self.estimated_online_s / self.online_s


@dataclass(frozen=True)
class BesideRun(Record):
    machine: Machine
    source: Source
    rows: tuple[Beside, ...]


def read_kept(file: Path) -> BesideRun:
    return BesideRun.from_json(json.loads(file.read_text()), file.name)


def mean_rates(first: Rates, second: Rates) -> Rates:
    return Rates.from_json(_mean(first.to_json(), second.to_json()))


def _mean(first: Any, second: Any) -> Any:
    if isinstance(first, dict):
        return {key: _mean(value, second[key]) for key, value in first.items()}
    return statistics.mean((first, second)) if isinstance(first, float) else first


def drift(before: Rates, after: Rates) -> float:
    """The median change of what the core takes for its pieces of work, up or down."""
    pairs = zip(_core_seconds(before), _core_seconds(after), strict=True)
    return abs(statistics.median(later / earlier for earlier, later in pairs) - 1)


def _core_seconds(rates: Rates) -> Iterator[float]:
    he = rates.he_small
    yield from (he.product, he.encrypt, he.parse, he.reply, he.decrypt)
    yield from (rates.gc.offline, rates.gmw.offline, rates.byte_s)
