"""Published results, the paper's among them, as points of accuracy, ReLUs and latency: `literature.csv`."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True)
class Published:
    data: str
    method: str
    relus: int | None
    accuracy: float  # percent
    distilled: bool
    latency_s: float | None  # online, DELPHI's protocol on the Sphynx paper's machine
    note: str
    source: str

    @property
    def is_latency_estimated(self) -> bool:
        return "latency estimated" in self.note

    def tip(self) -> str:
        parts = [f"{self.method}: {self.accuracy:.2f} %"]
        if self.relus is not None:
            parts.append(f"{self.relus:,} ReLUs")
        if self.latency_s is not None:
            parts.append(f"{self.latency_s:g} s online{', estimated' if self.is_latency_estimated else ''}")
        parts.append("distilled" if self.distilled else "not distilled")
        return ", ".join(parts) + f" ({self.source}{'; ' + self.note if self.note else ''})"


def read_published() -> list[Published]:
    text = resources.files("sphynx.report").joinpath("literature.csv").read_text()
    return [
        Published(
            fields["dataset"],
            fields["method"],
            int(fields["relus"]) if fields["relus"] else None,
            float(fields["test_acc"]),
            fields["distilled"] == "yes",
            float(fields["pi_latency_ms"]) / 1000 if fields["pi_latency_ms"] else None,
            fields["note"],
            fields["source"],
        )
        for fields in csv.DictReader(text.splitlines())
    ]
