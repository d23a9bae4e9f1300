"""Sustained private inferences per second, the offline phase included: the rows of `sphynx bench throughput`.

One server process and one process for each client (throughput_clients.py). `inferences_per_s` counts all clients'
inferences over one window, `seconds` long: from the first client's start to the end of the last inference of all.
Latencies are medians over all clients' inferences; `latency_s` is from nothing to the logits, offline and online, with
all waiting for the other clients in it. CPU seconds are per inference. Every client has a link of its own.

What serves and what asks is the caller's (`Serve`), so that this measures the service that users run.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from sphynx.bench.private import p95
from sphynx.bench.private_models import Model, question
from sphynx.bench.results import ClientRow, ThroughputRow
from sphynx.bench.throughput_clients import Asked, ServerUse, Serving, run_clients
from sphynx.program.backends import Backend
from sphynx.program.cost.link import Link
from sphynx.program.folder import load_program
from sphynx.program.ir import Program


class Serve(Protocol):
    """Start a server of a compiled folder for `clients` clients."""

    def __call__(self, folder: Path, clients: int, link: Link | None) -> AbstractContextManager[Serving]: ...


def measure_throughput(
    models: Sequence[Model],
    backends: Sequence[Backend],
    links: dict[str, Link | None],
    client_counts: Sequence[int],
    serve: Serve,
    *,
    seconds: float,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[ThroughputRow, ...]:
    """A row for each model, backend, link and number of clients. `progress` is told what is measured next."""
    rows = []
    for model in models:
        program = load_program(model.folder)
        pixels, expected = question(model.folder, 1)
        for backend in backends:
            for link_name, link in links.items():
                for count in client_counts:
                    progress(f"{model.name}, {backend}, {link_name}, {count} client{'s' if count > 1 else ''}")
                    with serve(model.folder, count, link) as serving:
                        used, clients = run_clients(serving, count, backend, pixels[0], expected[0], seconds)
                    rows.append(_row(model.name, program, backend, link_name, used, clients))
    return tuple(rows)


def _row(
    model: str, program: Program, backend: Backend, link: str, server: ServerUse, clients: list[Asked]
) -> ThroughputRow:
    latencies = [seconds for client in clients for seconds in client.latencies_s]
    offline = [seconds for client in clients for seconds in client.offline_s]
    online = [seconds for client in clients for seconds in client.online_s]
    window_s = max(client.end_s for client in clients) - min(client.start_s for client in clients)
    return ThroughputRow(
        model=model,
        relus=program.relu_count,
        ring_bits=program.ring_bits,
        backend=backend,
        link=link,
        clients=len(clients),
        seconds=window_s,
        inferences=len(latencies),
        inferences_per_s=len(latencies) / window_s,
        latency_s=statistics.median(latencies),
        latency_p95_s=p95(latencies),
        offline_s=statistics.median(offline),
        online_s=statistics.median(online),
        online_p95_s=p95(online),
        offline_bytes=clients[0].offline_bytes,
        online_bytes=clients[0].online_bytes,
        bytes_per_inference=clients[0].offline_bytes + clients[0].online_bytes,
        server_cpu_s=None if server.cpu_s is None else server.cpu_s / len(latencies),
        client_cpu_s=sum(client.cpu_s for client in clients) / len(latencies),
        server_peak_memory_bytes=server.peak_memory_bytes,
        equal_to_oracle=all(client.equal_to_oracle for client in clients),
        per_client=tuple(
            ClientRow(
                len(client.latencies_s),
                client.inferences_per_s,
                statistics.median(client.latencies_s),
                p95(client.latencies_s),
                statistics.median(client.online_s),
            )
            for client in clients
        ),
    )
