"""A compiled program, served: what a server opens before it listens, in which order, and closes again.

with open_server(program, weights, Hosting(keys, state), events) as hosted:
    hosted.server.serve()  # until another thread calls hosted.server.stop(), or a signal does
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sphynx.program.convolve import Array
from sphynx.program.cost.link import Link
from sphynx.program.ir import Program
from sphynx.program.weights import content_hash
from sphynx.protocol.linear import ServerModel
from sphynx.service.admission import Limits
from sphynx.service.credentials import check_server_keys
from sphynx.service.events import EventLog
from sphynx.service.monitor import Monitor
from sphynx.service.proxy_header import NO_PROXIES, ProxyNetworks
from sphynx.service.revocation import SEEN, SeenNumbers
from sphynx.service.server import Server
from sphynx.service.store import Store

BUNDLES = "bundles"


@dataclass(frozen=True)
class Hosting:
    """What a server is asked to be."""

    keys: Path  # the server's folder of `sphynx keys issue`
    state: Path  # of bundles and their ledger
    host: str = "127.0.0.1"
    port: int = 0  # 0: any that is free
    metrics_port: int | None = None  # None: neither /metrics nor /healthz; 0: any that is free
    limits: Limits = field(default_factory=Limits)
    link: Link | None = None  # emulated, for trials on one machine
    proxies: ProxyNetworks = NO_PROXIES
    trust_state: bool = False  # keep bundles after a restart of the machine or a move of their folder


@dataclass(frozen=True)
class Hosted:
    server: Server
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
    model = ServerModel(program, dict(weights))
    with ExitStack() as opened:
        store = opened.enter_context(
            Store(
                asked.state,
                quota_bytes=limits.quota_bytes,
                memory_bytes=limits.memory_bytes,
                weights_hash=content_hash(weights),
                shared=True,
                trust=asked.trust_state,
                tell=lambda why: events.write("discarded", why=why),
            )
        )
        server = Server(
            model,
            store,
            keys=asked.keys,
            host=asked.host,
            port=asked.port,
            limits=limits,
            events=events,
            link=asked.link,
            proxies=asked.proxies,
            seen_lists=SeenNumbers(asked.state / SEEN),
        )
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
            port=server.port,
            **told,
            program=program.content_hash,
            name=name or program.name,
            bundles=len(store.ready()),
        )
        yield hosted


def _stop_by_signal(server: Server) -> None:
    def stop(number: int, _frame: object) -> None:
        server.stop()
        signal.signal(number, signal.SIG_DFL)

    # The handler runs in the main thread, which may be about to wait for connections: it is woken besides.
    signal.set_wakeup_fd(server.wake_descriptor, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)


def usual_state(asked_for: str | Path, folder: Path) -> Path:
    """Where bundles are kept unless a place is given: in the compiled folder, for a model by name below ./bundles."""
    return folder / BUNDLES if folder == Path(asked_for) else Path(BUNDLES) / asked_for
