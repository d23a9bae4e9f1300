"""Benchmarks and checks as a report reads them: rows of `bench/results.py` with where they were made, and the part of
`sphynx check` that is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sphynx.bench.results import Amounts, BenchRow, LineFit, ThroughputRow
from sphynx.record import Record

Values = TypeVar("Values", BenchRow, ThroughputRow)


@dataclass(frozen=True)
class BenchEntry(Generic[Values]):
    """A row of a benchmark: a network, a ReLU protocol, a link; and where it was made."""

    values: Values
    source: str
    machine: str = "unknown"
    software: str = ""  # that it used besides Sphynx
    environment: Mapping[str, Any] = field(default_factory=dict)

    @property
    def protocol(self) -> str:
        """The protocol for ReLUs, and the link."""
        return f"{self.values.backend}, {self.values.link}"

    @property
    def name(self) -> str:
        return f"{self.values.model}, {self.protocol}"


@dataclass(frozen=True)
class Scaling(Record):
    """There is a line for every ReLU protocol, link and phase."""

    machine: Mapping[str, Any]
    rows: tuple[BenchRow, ...]
    fits: tuple[LineFit, ...]

    def __post_init__(self) -> None:
        groups = {(row.backend, row.link) for row in self.rows}
        lines = {(fit.backend, fit.link, fit.phase) for fit in self.fits}
        if not groups or not all((*group, phase) in lines for group in groups for phase in ("online", "offline")):
            raise ValueError("it lacks rows or lines")


@dataclass(frozen=True)
class LayerBits(Amounts):
    """The bits that a linear map was given, used, and could need."""

    name: str
    range_bits: int
    used_bits: int
    bound_bits: int


@dataclass(frozen=True)
class Ranges(Amounts):
    images: int
    accuracy: float
    layers: tuple[LayerBits, ...]
