"""Results of `sphynx bench`: rows, lines through them, and the machine and source that they are of.

Seconds are medians. Of a private row: `online_s` is the client's, from its first byte to the logits; `offline_s` ends
when both parties have ended. `setup_s` is once per connection and in neither. Bytes are both directions', counted by
the channel with frame headers; `rounds` are the client's waits online. CPU seconds are both parties'.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from sphynx.record import Record


class Amounts(Record):
    """Numbers are finite. Times may start a hair before the clock's zero, which is one party's; few may be negative."""

    signed: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for entry in dataclasses.fields(self):  # type: ignore[arg-type]  # a dataclass, as its contract says
            value = getattr(self, entry.name)
            least = -math.inf if entry.name in self.signed else -1
            if isinstance(value, int | float) and not (math.isfinite(value) and value > least):
                raise ValueError(f"{entry.name}: {value} is not an amount")


@dataclass(frozen=True)
class Machine(Record):
    """A number without it is worth nothing."""

    architecture: str
    system: str
    cores: int
    cpu_features: tuple[str, ...]
    aes_path: str
    rlwe_path: str
    load_average: tuple[float, ...]
    versions: Mapping[str, str | None]


@dataclass(frozen=True)
class Source(Record):
    commit: str | None
    source_sha256: str
    command: tuple[str, ...] = ()
    wire: int | None = None  # the version that parties spoke

    def __str__(self) -> str:
        return self.commit or self.source_sha256


@dataclass(frozen=True)
class Layer(Amounts):
    """A section of the protocol, as the client counts it."""

    name: str
    phase: str
    sent_bytes: int
    received_bytes: int
    seconds: float


@dataclass(frozen=True)
class Span(Amounts):
    """When a party was in a section, from the start of the last inference's offline phase on."""

    party: str
    phase: str
    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class PerParty(Amounts):
    server: int
    client: int


@dataclass(frozen=True, kw_only=True)
class BenchRow(Amounts):
    """A network, a ReLU protocol and a link, beside the same network in the clear (two threads, fp32).

    `plaintext_s` is that of the faster of torch and ONNX Runtime, and so are ratios; rows from before `onnxruntime_s`
    was measured have torch's alone.
    """

    model: str
    backend: str
    link: str
    transport: str = "plain"
    security: str = "semi-honest"
    reveal: str = "logits"
    ot: str = "softspoken"
    plaintext_s: float | None
    plaintext_cpu_s: float | None
    torch_s: float | None = None
    onnxruntime_s: float | None = None
    relus: int
    ring_bits: int
    batch: int
    repeats: int
    offline_s: float
    online_s: float
    offline_p95_s: float
    online_p95_s: float
    setup_s: float
    offline_cpu_s: float
    online_cpu_s: float
    offline_bytes: int
    online_bytes: int
    online_bytes_per_relu: float
    he_bytes: int
    rounds: int
    peak_memory_bytes: PerParty
    bundle_bytes: PerParty
    server_weights_bytes: int
    server_weights_s: float
    equal_to_oracle: bool
    layers: tuple[Layer, ...] = ()
    timeline: tuple[Span, ...] = ()
    # To the clear, by the wall clock; by CPU time where other work shares the machine.
    online_ratio: float | None
    total_ratio: float | None
    online_cpu_ratio: float | None
    total_cpu_ratio: float | None

    @property
    def total_s(self) -> float:
        return self.offline_s + self.online_s


@dataclass(frozen=True)
class LineFit(Amounts):
    """seconds = intercept_s + s_per_relu * ReLUs, of one ReLU protocol, link and phase."""

    signed: ClassVar[tuple[str, ...]] = ("intercept_s", "r_squared", "s_per_relu")

    backend: str
    link: str
    phase: str
    intercept_s: float
    s_per_relu: float
    r_squared: float
    networks: int
    smallest_relus: int
    largest_relus: int


@dataclass(frozen=True)
class ClientRow(Record):
    inferences: int
    inferences_per_s: float
    latency_s: float
    latency_p95_s: float
    online_s: float


@dataclass(frozen=True, kw_only=True)
class ThroughputRow(Amounts):
    """`seconds` is the window over which all clients' inferences are counted; `latency_s` is offline and online."""

    model: str
    relus: int
    ring_bits: int
    backend: str
    link: str
    transport: str = "TLS 1.3"
    clients: int
    seconds: float
    inferences: int
    inferences_per_s: float
    latency_s: float
    latency_p95_s: float
    offline_s: float
    online_s: float
    online_p95_s: float
    offline_bytes: int
    online_bytes: int
    bytes_per_inference: int
    server_cpu_s: float | None  # per inference; None where the system does not say
    client_cpu_s: float
    server_peak_memory_bytes: int | None
    equal_to_oracle: bool
    per_client: tuple[ClientRow, ...]


@dataclass(frozen=True)
class BenchRun(Record):
    """The file that `sphynx bench private` and, with lines, `benchmarks.scaling` write."""

    machine: Machine
    source: Source
    rows: tuple[BenchRow, ...]
    fits: tuple[LineFit, ...] | None = None


@dataclass(frozen=True)
class ThroughputRun(Record):
    machine: Machine
    source: Source
    rows: tuple[ThroughputRow, ...]
