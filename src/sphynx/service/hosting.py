"""A compiled program, served: what a server opens before it listens, in which order, and closes again.

with open_server(program, weights, Hosting(keys, state), events) as hosted:
    hosted.server.serve()  # until another thread calls hosted.server.stop(), or a signal does
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.cost.link import Link
from sphynx.program.ir import Program
from sphynx.program.weights import content_hash
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.shared_weights import write_shared
from sphynx.service.admission import Admission, Limits, available_cores
from sphynx.service.credentials import FreshKeys, check_server_keys
from sphynx.service.events import EventLog
from sphynx.service.fleet import Fleet
from sphynx.service.listening import PortListener
from sphynx.service.monitor import Monitor
from sphynx.service.proxy_header import NO_PROXIES, ProxyNetworks
from sphynx.service.revocation import SEEN, SeenNumbers
from sphynx.service.server import Server
from sphynx.service.store import Store
from sphynx.service.worker import WorkerOrder

BUNDLES = "bundles"


@dataclass(frozen=True)
class Hosting:
    """The settings of a server."""

    keys: Path  # the server's folder of `sphynx keys issue`
    state: Path  # of bundles and their ledger
    host: str = "127.0.0.1"
    port: int = 0  # 0: any that is free
    metrics_port: int | None = None  # None: neither /metrics nor /healthz; 0: any that is free
    limits: Limits = field(default_factory=Limits)
    link: Link | None = None  # emulated, for trials on one machine
    proxies: ProxyNetworks = NO_PROXIES
    trust_state: bool = False  # keep bundles after a restart of the machine or a move of their folder
    processes: int = 1  # that lead conversations; more than one need `compiled`
    compiled: Path | None = None  # the folder that the program and the weights are from


class Serves(Protocol):
    """A server that listens, in this process or in several."""

    @property
    def port(self) -> int: ...
    @property
    def wake_descriptor(self) -> int: ...
    def serve(self) -> None: ...
    def stop(self) -> None: ...
    def stop_now(self) -> None: ...


@dataclass(frozen=True)
class Hosted:
    server: Serves
    metrics_port: int | None


@contextmanager
def open_server(
    program: Program,
    weights: Mapping[str, Array],
    asked: Hosting,
    events: EventLog,
    *,
    name: str = "",
    stops_by_signal: bool = False,
) -> Iterator[Hosted]:
    """Listening already: who connects waits until `serve` is called. `name` is for the log.

    `stops_by_signal`, in the main thread of a process that does nothing else: the first Ctrl-C or SIGTERM lets running
    work finish, the second one stops at once.
    """
    check_server_keys(asked.keys)
    limits = asked.limits
    model = ServerModel(program, dict(weights), memory_bytes=limits.weight_memory_bytes)
    with ExitStack() as opened:
        store = opened.enter_context(
            Store(
                asked.state,
                quota_bytes=limits.quota_bytes,
                memory_bytes=limits.memory_bytes if asked.processes == 1 else 0,
                weights_hash=content_hash(weights),
                shared=True,
                trust=asked.trust_state,
                tell=lambda why: events.write("discarded", why=why),
            )
        )
        listener = PortListener(asked.host, asked.port)
        opened.callback(listener.close)
        seen = SeenNumbers(asked.state / SEEN)
        server: Server | Fleet
        if asked.processes == 1:
            admission = Admission(limits)
            server = Server(
                model,
                store,
                keys=asked.keys,
                listener=listener,
                admission=admission,
                events=events,
                link=asked.link,
                proxies=asked.proxies,
                seen_lists=seen,
            )
        else:
            shared = write_shared(model, weights)
            opened.callback(os.close, shared)
            del model  # the workers read the shared weights
            keys = FreshKeys(asked.keys, seen, lambda why: events.write("revocation_list", why=why))
            server = Fleet(_worker_order(asked, shared), asked.processes, store, listener, keys, events)
            opened.callback(server.close)
            server.start()
        hosted = Hosted(server, None)
        told: dict[str, int] = {}
        if asked.metrics_port is not None:
            monitor = Monitor(asked.metrics_port, server.render_metrics, server.is_healthy)
            opened.callback(monitor.close)
            hosted, told = Hosted(server, monitor.port), {"metrics_port": monitor.port}
        if stops_by_signal:  # before the log says that it serves
            _stop_by_signal(server)
        events.write(
            "serving",
            host=asked.host,
            port=listener.port,
            **told,
            program=program.content_hash,
            name=name or program.name,
            bundles=len(store.ready()),
        )
        yield hosted


def _worker_order(asked: Hosting, shared: int) -> WorkerOrder:
    if asked.compiled is None:
        raise InputError(
            "several processes can only serve a compiled folder",
            where="`processes`",
            remedy="Save the program, and serve the folder that it was saved to.",
        )
    return WorkerOrder(
        number=0,
        compiled=asked.compiled,
        keys=asked.keys,
        state=asked.state,
        limits=asked.limits,
        cores=max(1, available_cores() // asked.processes),
        control=-1,
        weights=shared,
        link=asked.link,
        proxies=tuple(map(str, asked.proxies.networks)),
    )


def _stop_by_signal(server: Serves) -> None:
    def stop(number: int, _frame: object) -> None:
        server.stop()
        signal.signal(number, signal.SIG_DFL)

    # The handler runs in the main thread, which may be about to wait for connections: it is woken besides.
    signal.set_wakeup_fd(server.wake_descriptor, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def usual_state(asked_for: str | Path, folder: Path) -> Path:
    """The folder of bundles unless one is given: in the compiled folder, for a model by name below ./bundles."""
    return folder / BUNDLES if folder == Path(asked_for) else Path(BUNDLES) / asked_for
