"""Counters, gauges and histograms of a server, written as OpenMetrics 1.0, which Prometheus and others read.

Counters and histograms are numbers that only grow, so what several processes counted is added up. Gauges are asked for
when somebody reads. Times are in seconds, sizes in bytes; no name of a client is a label.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping

Labels = tuple[tuple[str, str], ...]
PREFIX = "sphynx_"
# Every metric there is: its kind and its help text.
METRICS = {
    "build_info": ("info", "Versions of the software, of messages on the wire, and of the service."),
    "program_info": ("info", "A program that is served: its name, and the first digits of its hash, as in others."),
    "connections_total": ("counter", "Connections by how they ended."),
    "handshake_failures_total": ("counter", "Connections that were not admitted."),
    "refusals_total": (
        "counter",
        "Requests that were refused, by reason; quota: the client reached one of its limits.",
    ),
    "strikes_total": ("counter", "Checks that clients failed."),
    "bundles_prepared_total": ("counter", "Bundles prepared, by program and backend."),
    "inferences_total": ("counter", "Inferences, by program, backend and result."),
    "offline_seconds": ("histogram", "Time to prepare a bundle or a group of them, by program and backend."),
    "online_seconds": ("histogram", "Time of an inference, bundle to last message, by program and backend."),
    "waiting_seconds": ("histogram", "Time that requests waited for a worker, by program and phase."),
    "sent_bytes_total": ("counter", "Bytes sent, by program and phase."),
    "received_bytes_total": ("counter", "Bytes received, by program and phase."),
    "open_connections": ("gauge", "Clients connected now."),
    "offline_running": ("gauge", "Preparations running now."),
    "online_running": ("gauge", "Inferences running now."),
    "ahead_running": ("gauge", "Preparations of bundles made ahead, running now."),
    "bundles_ready": ("gauge", "Bundles in the store."),
    "unread_bytes": ("gauge", "Bytes of answers that clients have not taken yet, in memory."),
    "store_bytes": ("gauge", "Bytes of the bundles in the store."),
    "store_quota_bytes": ("gauge", "The largest number of bytes that bundles may take in the store."),
    "revocation_list_ends_soon": ("gauge", "1 if the list of revoked keys expires within 14 days."),
    "certificate_expiry_timestamp_seconds": ("gauge", "When the certificate expires, in seconds since 1970."),
}
# Upper ends, in seconds: from an inference of a small network on a fast machine to a client behind a slow link.
BUCKETS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 120.0, 900.0)
_PARTS = {"info": ("",), "counter": ("",), "gauge": ("",), "histogram": ("_bucket", "_sum", "_count")}
# The names of samples, and the metrics that they belong to.
SAMPLES = {name + part: name for name, (kind, _) in METRICS.items() for part in _PARTS[kind]}


Values = dict[tuple[str, Labels], float]


class Metrics:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: Values = {}
        self._parts: list[Part] = []  # what other processes have counted so far

    def values(self) -> Values:
        """The values that this process has counted."""
        with self._lock:
            return dict(self._values)

    def new_part(self) -> Part:
        """A part for what another process counts: rendered together with this one's."""
        part = Part(self)
        with self._lock:
            self._parts.append(part)
        return part

    def end_part(self, part: Part) -> None:
        """Keep what a process has counted after it has ended, and forget what it had: its gauges."""
        with self._lock:
            if part in self._parts:
                self._parts.remove(part)
                for key, value in part.values.items():
                    if METRICS[SAMPLES[key[0]]][0] != "gauge":
                        self._values[key] = self._values.get(key, 0) + value

    def add(self, name: str, value: float = 1, /, **labels: str) -> None:
        with self._lock:
            self._add(name, value, labels)

    def observe(self, name: str, value: float, /, **labels: str) -> None:
        """Count a value in a histogram: in every bucket that it fits into."""
        with self._lock:
            for end in (*BUCKETS, math.inf):
                self._add(f"{name}_bucket", value <= end, {**labels, "le": _written(end)})
            self._add(f"{name}_sum", value, labels)
            self._add(f"{name}_count", 1, labels)

    def value(self, name: str, /, **labels: str) -> float:
        """Add up all samples of this name that have these labels, whichever others they have."""
        with self._lock:
            return sum(
                value for (sample, own), value in self._values.items() if sample == name and labels.items() <= set(own)
            )

    def render(self, gauges: Mapping[str, float]) -> str:
        with self._lock:
            values = dict(self._values)
            for part in self._parts:
                for key, value in part.values.items():
                    values[key] = values.get(key, 0) + value
        values.update({(name, ()): value for name, value in gauges.items()})
        samples: dict[str, list[str]] = {name: [] for name in METRICS}
        for (sample, labels), value in sorted(values.items(), key=_order):
            inside = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels)
            braces = f"{{{inside}}}" if inside else ""
            samples[SAMPLES[sample]].append(f"{PREFIX}{sample}{braces} {_written(value)}")
        lines = []
        for name, (kind, text) in METRICS.items():
            family = PREFIX + name.removesuffix("_total" if kind == "counter" else "_info" if kind == "info" else "\0")
            lines += [f"# HELP {family} {text}", f"# TYPE {family} {kind}", *samples[name]]
        return "\n".join([*lines, "# EOF"]) + "\n"

    def _add(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        key = (name, tuple(sorted(labels.items())))
        self._values[key] = self._values.get(key, 0) + value


class Part:
    """The counts of one other process so far, as it last said."""

    def __init__(self, whole: Metrics) -> None:
        self._whole, self.values = whole, Values()

    def end(self) -> None:
        self._whole.end_part(self)


def _order(item: tuple[tuple[str, Labels], float]) -> tuple[Labels, str, float]:
    """All samples of one set of labels together, buckets by their ends."""
    (sample, labels), _ = item
    end = next((float(label) for key, label in labels if key == "le"), math.inf)
    return tuple(pair for pair in labels if pair[0] != "le"), sample, end


def _written(value: float) -> str:
    if math.isinf(value):
        return "+Inf"
    return str(int(value)) if value == int(value) and abs(value) < 1 << 53 else repr(float(value))


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
