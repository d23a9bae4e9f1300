"""/metrics in Prometheus's text format and /healthz, over HTTP on this machine's loopback address only."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from sphynx.errors import InputError, SphynxError
from sphynx.threads import Worker

Labels = tuple[tuple[str, str], ...]
PREFIX = "sphynx_"
# Every metric there is: its kind and its help text.
METRICS = {
    "connections_total": ("counter", "Connections, by how they ended."),
    "handshake_failures_total": ("counter", "Connections that were not admitted."),
    "refusals_total": ("counter", "Requests that were refused."),
    "bundles_prepared_total": ("counter", "Bundles prepared, by backend."),
    "inferences_total": ("counter", "Inferences, by backend and result."),
    "offline_seconds_total": ("counter", "Seconds spent preparing bundles."),
    "online_seconds_total": ("counter", "Seconds spent in inferences."),
    "sent_bytes_total": ("counter", "Bytes sent, by phase."),
    "received_bytes_total": ("counter", "Bytes received, by phase."),
    "connections": ("gauge", "Clients connected now."),
    "offline_running": ("gauge", "Preparations running now."),
    "online_running": ("gauge", "Inferences running now."),
    "ahead_running": ("gauge", "Preparations of bundles made ahead, running now."),
    "bundles_ready": ("gauge", "Bundles in the store."),
    "unread_bytes": ("gauge", "Bytes of answers in memory that clients have not read yet."),
    "store_bytes": ("gauge", "Bytes of the bundles in the store."),
    "revocation_list_ends_soon": ("gauge", "1 if the list of revoked keys expires within 14 days."),
}


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
                    if METRICS[key[0]][0] == "counter":
                        self._values[key] = self._values.get(key, 0) + value

    def add(self, name: str, value: float = 1, **labels: str) -> None:
        key = (name, tuple(sorted(labels.items())))
        with self._lock:
            self._values[key] = self._values.get(key, 0) + value

    def value(self, name: str, **labels: str) -> float:
        with self._lock:
            return self._values.get((name, tuple(sorted(labels.items()))), 0)

    def render(self, gauges: Mapping[str, float]) -> str:
        with self._lock:
            values = dict(self._values)
            for part in self._parts:
                for key, value in part.values.items():
                    values[key] = values.get(key, 0) + value
        values.update({(name, ()): value for name, value in gauges.items()})
        lines = []
        for name, (kind, text) in METRICS.items():
            lines += [f"# HELP {PREFIX}{name} {text}", f"# TYPE {PREFIX}{name} {kind}"]
            for (found, labels), value in sorted(values.items()):
                if found == name:
                    inside = ",".join(f'{key}="{label}"' for key, label in labels)
                    lines.append(f"{PREFIX}{name}{{{inside}}} {value:g}" if inside else f"{PREFIX}{name} {value:g}")
        return "\n".join(lines) + "\n"


class Part:
    """The counts of one other process so far, as it last said."""

    def __init__(self, whole: Metrics) -> None:
        self._whole, self.values = whole, Values()

    def end(self) -> None:
        self._whole.end_part(self)


class _HttpServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asks may leave before the answer: stderr is the log's, one JSON object a line."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)

    def process_request(self, request: Any, client_address: Any) -> None:
        try:
            Worker(partial(self.process_request_thread, request, client_address))
        except (RuntimeError, MemoryError):
            self.shutdown_request(request)


class Monitor:
    """Serves until closed, in its own threads."""

    def __init__(self, port: int, render: Callable[[], str], is_healthy: Callable[[], bool]) -> None:
        class Handler(BaseHTTPRequestHandler):
            timeout = 5  # for a request to arrive

            def do_GET(self) -> None:
                if self.path == "/metrics":
                    self._answer(*self._metrics())
                elif self.path == "/healthz":
                    healthy = is_healthy()
                    self._answer(200 if healthy else 503, "ok\n" if healthy else "stopping\n", "text/plain")
                else:
                    self._answer(404, "not found\n", "text/plain")

            def _metrics(self) -> tuple[int, str, str]:
                try:
                    return 200, render(), "text/plain; version=0.0.4"
                except SphynxError as error:  # a ledger that cannot be read
                    return 500, f"{error}\n", "text/plain"

            def log_message(self, *_: object) -> None:
                """Scrapes every few seconds are not events."""

            def _answer(self, status: int, text: str, kind: str) -> None:
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        try:
            self._http = _HttpServer(("127.0.0.1", port), Handler)
        except OSError as error:
            raise InputError(
                f"cannot listen there ({error.strerror})",
                where=f"127.0.0.1:{port}",
                remedy="Choose a free port: `metrics_port=PORT`.",
            ) from None
        self._thread = threading.Thread(target=self._http.serve_forever, name="sphynx-monitor", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._http.server_address[1])

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
