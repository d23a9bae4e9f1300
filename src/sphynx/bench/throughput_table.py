"""Rows of `sphynx bench throughput` for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

COLUMNS = [
    "network", ">ReLUs", "ReLU", "link", ">clients", ">inferences/s", ">latency", ">p95", ">online", ">p95",
    ">MB each", ">CPU server + clients", ">n", "exact",
]  # fmt: skip


def table_rows(rows: list[dict[str, Any]]) -> Iterator[list[str]]:
    for row in rows:
        cpu_s = row["server_cpu_s"]
        yield [
            row["model"],
            f"{row['relus']:,}",
            row["relu_backend"],
            row["link"],
            str(row["clients"]),
            f"{row['inferences_per_s']:.2f}",
            f"{row['latency_s']:.3f} s",
            f"{row['latency_p95_s']:.3f} s",
            f"{1e3 * row['online_s']:.1f} ms",
            f"{1e3 * row['online_p95_s']:.1f} ms",
            f"{row['bytes_per_inference'] / 1e6:.2f}",
            f"{'-' if cpu_s is None else f'{cpu_s:.3f}'} + {row['client_cpu_s']:.3f} s",
            str(row["inferences"]),
            "yes" if row["equal_to_oracle"] else "NO",
        ]
