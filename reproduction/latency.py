"""The latencies that the paper estimated rather than measured, taken apart and made again. All of them are estimates.

ImageNet (section 5.2): DELPHI could not run these networks, so the paper adds

    average GC seconds per ReLU of its Tiny-ImageNet networks x ReLUs + plaintext time

and prints neither part. Printed latency over ReLUs is the same for all its ResNet18 and VGG11 rows but one, so that is
its GC time; what a row has beyond is left for plaintext time. Beside it, the same with what Tiny-ImageNet's printed
latencies give, linear layers included.

SAFENet (section 5.2) was measured on another machine: scaled by DELPHI's latency on both.
"""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass
from typing import Any

from sphynx.report.literature import Published, read_published

MEASURED, ESTIMATED = "tiny-imagenet", "imagenet"
REFERENCE_NETWORKS = ("ResNet18", "VGG11")
# As the paper tells it: DELPHI's network of about 67 % took 14.4 s on SAFENet's machine and 4.4 s on the paper's.
DELPHI_THERE_S = 14.4
DELPHI_RELUS = 180_000


@dataclass(frozen=True)
class LatencyEstimate:
    """An estimate for one ImageNet network. Seconds, online, DELPHI's protocol on the paper's machine."""

    network: str
    relus: int
    printed_s: float
    gc_s: float  # by the GC time that the paper's own rows imply
    from_tiny_s: float  # ReLUs x what the Tiny-ImageNet networks took for each, everything included

    @property
    def left_for_plaintext_s(self) -> float:
        return self.printed_s - self.gc_s

    @property
    def from_tiny_error(self) -> float:
        return self.from_tiny_s / self.printed_s - 1

    def to_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "left_for_plaintext_s": self.left_for_plaintext_s,
            "from_tiny_error": self.from_tiny_error,
            "is_estimate": True,
        }


def latency_s(relus: int, gc_s_per_relu: float, plaintext_s: float = 0.0) -> float:
    """The paper's estimator."""
    return gc_s_per_relu * relus + plaintext_s


def implied_gc_s_per_relu() -> float:
    """The GC time with which the ImageNet rows of ResNet18 and VGG11 were estimated."""
    return statistics.median(_s_per_relu(row) for row in _rows(ESTIMATED) if row.method in REFERENCE_NETWORKS)


def measured_s_per_relu() -> float:
    """Average over the paper's Tiny-ImageNet networks of the whole online latency: no less than its GC part."""
    return statistics.mean(_s_per_relu(row) for row in _rows(MEASURED))


def imagenet_estimates() -> list[LatencyEstimate]:
    gc, tiny = implied_gc_s_per_relu(), measured_s_per_relu()
    return [
        LatencyEstimate(
            f"{row.method}, {row.relus / 1e3:g}K",
            row.relus,
            row.latency_s,
            latency_s(row.relus, gc),
            latency_s(row.relus, tiny),
        )
        for row in _rows(ESTIMATED)
        if row.relus is not None and row.latency_s is not None
    ]


def rescaled_s(there_s: float, reference_there_s: float, reference_here_s: float) -> float:
    """A latency measured on another machine, as it would be here by a network measured on both."""
    return there_s * reference_here_s / reference_there_s


@dataclass(frozen=True)
class Rescaled:
    """SAFENet's latency. The paper does not print what it started from: `there_s` is what gives its result."""

    here_s: float
    delphi_here_s: float
    delphi_there_s: float = DELPHI_THERE_S

    @property
    def there_s(self) -> float:
        return rescaled_s(self.here_s, self.delphi_here_s, self.delphi_there_s)

    def to_json(self) -> dict[str, Any]:
        return {"network": "SAFENet", **asdict(self), "there_s": self.there_s, "is_estimate": True}


def safenet() -> Rescaled:
    rows = [row for row in read_published() if row.data == "cifar100" and row.latency_s is not None]
    (own,) = (row for row in rows if row.method == "SAFENet")
    (delphi,) = (row for row in rows if row.method == "DELPHI" and row.relus == DELPHI_RELUS)
    assert own.latency_s is not None and delphi.latency_s is not None
    return Rescaled(own.latency_s, delphi.latency_s)


def estimates_of(data: str) -> list[dict[str, Any]]:
    """List the paper's latencies on a data set that are estimates, as JSON."""
    if data == "imagenet":
        return [estimate.to_json() for estimate in imagenet_estimates()]
    return [safenet().to_json()] if data == "cifar100" else []


def _rows(data: str) -> list[Published]:
    return [row for row in read_published() if row.data == data and row.latency_s is not None]


def _s_per_relu(row: Published) -> float:
    assert row.latency_s is not None and row.relus is not None
    return row.latency_s / row.relus
