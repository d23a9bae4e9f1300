"""The part that a report reads of the JSON of `sphynx bench` and `sphynx check`.

Such files may be of other versions or come from other programs: what a chart draws must be there and be an amount, and
the rest may be missing.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from sphynx.record import Record


class Amounts(Record):
    """Numbers are finite. Times may start a hair before the clock's zero, which is one party's; few may be negative."""

    signed: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, entry.name)
            least = -math.inf if entry.name in self.signed else -1
            if isinstance(value, int | float) and not (math.isfinite(value) and value > least):
                raise ValueError(f"{entry.name}: {value} is not an amount")


@dataclass(frozen=True)
class Layer(Amounts):
    name: str
    phase: str
    sent_bytes: float
    received_bytes: float


@dataclass(frozen=True)
class Span(Amounts):
    party: str
    phase: str
    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class PerParty(Amounts):
    server: float
    client: float


@dataclass(frozen=True, kw_only=True)
class PrivateTimes(Amounts):
    model: str
    backend: str
    link: str = ""
    relus: int | None = None
    online_s: float
    offline_s: float | None = None
    plaintext_s: float | None = None
    offline_bytes: float | None = None
    online_bytes: float | None = None
    rounds: int | None = None
    peak_memory_bytes: PerParty | None = None
    equal_to_oracle: bool | None = None
    layers: tuple[Layer, ...] = ()
    timeline: tuple[Span, ...] = ()

    @property
    def total_s(self) -> float | None:
        return None if self.offline_s is None else self.offline_s + self.online_s


@dataclass(frozen=True, kw_only=True)
class Throughput(Amounts):
    model: str
    backend: str
    link: str
    clients: int
    inferences_per_s: float
    latency_s: float
    latency_p95_s: float | None = None
    online_s: float | None = None
    bytes_per_inference: float
    equal_to_oracle: bool | None = None


Values = TypeVar("Values", PrivateTimes, Throughput)


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
        """The protocol for ReLUs, and the link where it is known."""
        return f"{self.values.backend}, {self.values.link}" if self.values.link else self.values.backend

    @property
    def name(self) -> str:
        return f"{self.values.model}, {self.protocol}"


@dataclass(frozen=True)
class ScaledRow(Amounts):
    model: str
    backend: str
    link: str
    transport: str
    relus: int
    repeats: int
    online_s: float
    offline_s: float


@dataclass(frozen=True)
class Line(Amounts):
    signed: ClassVar[tuple[str, ...]] = ("intercept_s", "r_squared", "s_per_relu")

    backend: str
    link: str
    phase: str
    intercept_s: float
    s_per_relu: float
    r_squared: float
    smallest_relus: int
    largest_relus: int


@dataclass(frozen=True)
class Scaling(Record):
    """There is a line for every ReLU protocol, link and phase."""

    machine: Mapping[str, Any]
    rows: tuple[ScaledRow, ...]
    fits: tuple[Line, ...]

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
