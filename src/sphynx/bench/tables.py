"""Rows of `sphynx bench private` and `bench throughput` for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sphynx.bench.results import BenchRow, ThroughputRow
from sphynx.units import bytes_text, seconds_text

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
    ">online bytes",
    ">offline bytes",
    ">rounds",
    ">memory, server / client",
    "exact",
]
SECURITY_COLUMNS = [
    "network",
    "security",
    "link",
    ">online",
    ">offline",
    ">CPU online",
    ">CPU offline",
    ">online bytes",
    ">offline bytes",
    ">disk, server / client",
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
    ">bytes each",
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
            _time(row.plaintext_s if row.torch_s is None else row.torch_s),
            _time(row.onnxruntime_s),
            _time(row.online_s),
            _ratio(row.online_ratio),
            _time(row.offline_s),
            _ratio(row.total_ratio),
            bytes_text(row.online_bytes),
            bytes_text(row.offline_bytes),
            str(row.rounds),
            f"{bytes_text(memory.server)} / {bytes_text(memory.client)}",
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
            _time(row.online_s),
            _time(row.offline_s),
            seconds_text(row.online_cpu_s),
            seconds_text(row.offline_cpu_s),
            bytes_text(row.online_bytes),
            bytes_text(row.offline_bytes),
            f"{bytes_text(disk.server)} / {bytes_text(disk.client)}",
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
            seconds_text(row.latency_s),
            seconds_text(row.latency_p95_s),
            seconds_text(row.online_s),
            seconds_text(row.online_p95_s),
            bytes_text(row.bytes_per_inference),
            f"{_time(cpu_s)} + {_time(row.client_cpu_s)}",
            str(row.inferences),
            _exact(row.equal_to_oracle),
        ]


_USUAL = ("semi-honest", "logits", "softspoken")


def _mode(row: BenchRow) -> str:
    """The backend, and what is not as usual."""
    unusual = (word for word in (row.security, row.reveal, row.ot) if word not in _USUAL)
    return ", ".join((row.backend, *unusual))


def _time(seconds: float | None) -> str:
    return "-" if seconds is None else seconds_text(seconds)


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _exact(equal: bool) -> str:
    return "yes" if equal else "NO"
