"""Rows of `sphynx bench private` for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

COLUMNS = [
    "network", ">ReLUs", "ReLU", "link", ">in the clear", ">online", ">x", ">offline", ">both x", ">online MB",
    ">offline MB", ">rounds", ">peak MB s / c", "exact",
]  # fmt: skip


def table_rows(rows: list[dict[str, Any]]) -> Iterator[list[str]]:
    for row in rows:
        memory = row["peak_memory_bytes"]
        yield [
            row["model"],
            f"{row['batch']} x {row['relus']:,}" if row["batch"] > 1 else f"{row['relus']:,}",
            row["relu_backend"],
            row["link"],
            _milliseconds(row["plaintext_s"]),
            _milliseconds(row["online_s"]),
            _ratio(row["online_ratio"]),
            _milliseconds(row["offline_s"]),
            _ratio(row["total_ratio"]),
            f"{row['online_bytes'] / 1e6:.2f}",
            f"{row['offline_bytes'] / 1e6:.1f}",
            str(row["rounds"]),
            f"{memory['server'] / 1e6:.0f} / {memory['client'] / 1e6:.0f}",
            "yes" if row["equal_to_oracle"] else "NO",
        ]


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{1e3 * seconds:,.1f} ms"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
