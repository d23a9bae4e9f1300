"""Rows of `sphynx bench private` and `bench throughput` for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sphynx.bench.results import BenchRow, ThroughputRow

PRIVATE_COLUMNS = [
    "network",
    ">ReLUs",
    "ReLU",
    "link",
    ">torch",
    ">onnxruntime",
    ">online",
    ">x",
    ">offline",
    ">both x",
    ">online MB",
    ">offline MB",
    ">rounds",
    ">peak MB s / c",
    "exact",
]
SECURITY_COLUMNS = [
    "network",
    "security",
    "link",
    ">online",
    ">offline",
    ">CPU s online",
    ">CPU s offline",
    ">online MB",
    ">offline MB",
    ">disk MB s / c",
]
THROUGHPUT_COLUMNS = [
    "network",
    ">ReLUs",
    "ReLU",
    "link",
    ">clients",
    ">inferences/s",
    ">latency",
    ">p95",
    ">online",
    ">p95",
    ">MB each",
    ">CPU server + clients",
    ">n",
    "exact",
]


def private_rows(rows: Sequence[BenchRow]) -> Iterator[list[str]]:
    for row in rows:
        memory = row.peak_memory_bytes
        yield [
            row.model,
            f"{row.batch} x {row.relus:,}" if row.batch > 1 else f"{row.relus:,}",
            _mode(row),
            row.link,
            _milliseconds(row.plaintext_s if row.torch_s is None else row.torch_s),
            _milliseconds(row.onnxruntime_s),
            _milliseconds(row.online_s),
            _ratio(row.online_ratio),
            _milliseconds(row.offline_s),
            _ratio(row.total_ratio),
            f"{row.online_bytes / 1e6:.2f}",
            f"{row.offline_bytes / 1e6:.1f}",
            str(row.rounds),
            f"{memory.server / 1e6:.0f} / {memory.client / 1e6:.0f}",
            _exact(row.equal_to_oracle),
        ]


def security_rows(rows: Sequence[BenchRow]) -> Iterator[list[str]]:
    """Compare kinds of security: CPU is that of both parties, the disk that of a bundle's halves."""
    for row in rows:
        disk = row.bundle_bytes
        yield [
            f"{row.model}, {row.backend}",
            row.security,
            row.link,
            _milliseconds(row.online_s),
            _milliseconds(row.offline_s),
            f"{row.online_cpu_s:.3f}",
            f"{row.offline_cpu_s:.3f}",
            f"{row.online_bytes / 1e6:.2f}",
            f"{row.offline_bytes / 1e6:.1f}",
            f"{disk.server / 1e6:.1f} / {disk.client / 1e6:.1f}",
        ]


def throughput_rows(rows: Sequence[ThroughputRow]) -> Iterator[list[str]]:
    for row in rows:
        cpu_s = row.server_cpu_s
        yield [
            row.model,
            f"{row.relus:,}",
            row.backend,
            row.link,
            str(row.clients),
            f"{row.inferences_per_s:.2f}",
            f"{row.latency_s:.3f} s",
            f"{row.latency_p95_s:.3f} s",
            f"{1e3 * row.online_s:.1f} ms",
            f"{1e3 * row.online_p95_s:.1f} ms",
            f"{row.bytes_per_inference / 1e6:.2f}",
            f"{'-' if cpu_s is None else f'{cpu_s:.3f}'} + {row.client_cpu_s:.3f} s",
            str(row.inferences),
            _exact(row.equal_to_oracle),
        ]


def _mode(row: BenchRow) -> str:
    """The backend, and what is not as usual."""
    unusual = (word for word in (row.security, row.ot) if word not in ("semi-honest", "softspoken"))
    return ", ".join((row.backend, *unusual))


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:,.1f} ms"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _exact(equal: bool) -> str:
    return "yes" if equal else "NO"
