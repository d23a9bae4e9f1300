"""A compiled program, served: what a server opens before it listens, in which order, and closes again.

with open_server(program, weights, ServerSettings(keys=keys, state=state), events) as hosted:
    hosted.server.serve()  # until another thread calls hosted.server.stop(), or a signal does
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.ir import Program
from sphynx.program.weights import content_hash
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.shared_weights import write_shared
from sphynx.protocol.verify.plan import BUNDLE_IMAGES, CheckPlan, plan_security
from sphynx.service.admission import Admission
from sphynx.service.credentials import FreshKeys, check_server_keys
from sphynx.service.events import EventLog
from sphynx.service.fleet import Fleet
from sphynx.service.listening import PortListener
from sphynx.service.monitor import Monitor
from sphynx.service.revocation import SEEN, SeenNumbers
from sphynx.service.server import Server
from sphynx.service.settings import ServerSettings
from sphynx.service.store import Store
from sphynx.service.strikes import Strikes
from sphynx.service.worker import WorkerOrder
from sphynx.threads import available_cores

BUNDLES = "bundles"


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
    settings: ServerSettings,
    events: EventLog,
    *,
    compiled: Path | None = None,
    name: str = "",
    stops_by_signal: bool = False,
) -> Iterator[Hosted]:
    """Listening already: who connects waits until `serve` is called. Several processes read the program from
    the folder `compiled`; `name` is for the log.

    `stops_by_signal`, in the main thread of a process that does nothing else: the first Ctrl-C or SIGTERM lets running
    work finish, the second one stops at once.
    """
    keys, state, limits = Path(settings.keys), settings.state_folder, settings.limits
    check_server_keys(keys)
    images = max(BUNDLE_IMAGES, limits.batch)
    check = plan_security(settings.security, program, weights, images=images)
    model = ServerModel(program, dict(weights), memory_bytes=limits.weight_memory_bytes, check=check)
    with ExitStack() as opened:
        store = opened.enter_context(
            Store(
                state,
                quota_bytes=limits.quota_bytes,
                memory_bytes=limits.memory_bytes if settings.processes == 1 else 0,
                weights_hash=content_hash(weights),
                check_plan=str(check or ""),
                shared=True,
                trust=settings.trust_state,
                tell=lambda why: events.write("discarded", why=why),
            )
        )
        host, port = settings.address
        listener = PortListener(host, port)
        opened.callback(listener.close)
        seen, strikes = SeenNumbers(state / SEEN), Strikes(settings.strikes_file)
        server: Server | Fleet
        if settings.processes == 1:
            admission = Admission(limits)
            server = Server(
                model,
                store,
                keys=keys,
                listener=listener,
                admission=admission,
                events=events,
                link=settings.emulated_link,
                proxies=settings.proxies,
                seen_lists=seen,
                strikes=strikes,
                ot=settings.ot,
            )
        else:
            shared = write_shared(model, weights)
            opened.callback(os.close, shared)
            del model  # the workers read the shared weights
            fresh = FreshKeys(keys, seen, lambda why: events.write("revocation_list", why=why))
            order = _order_workers(settings, compiled, shared, check)
            server = Fleet(order, settings.processes, store, listener, fresh, events)
            opened.callback(server.close)
            server.start()
        hosted = Hosted(server, None)
        told: dict[str, int] = {}
        if settings.metrics_port is not None:
            monitor = Monitor(settings.metrics_port, server.render_metrics, server.is_healthy)
            opened.callback(monitor.close)
            hosted, told = Hosted(server, monitor.port), {"metrics_port": monitor.port}
        if stops_by_signal:  # before the log says that it serves
            _stop_by_signal(server)
        events.write(
            "serving",
            host=host,
            port=listener.port,
            **told,
            program=program.content_hash,
            name=name or program.name,
            security=settings.security,
            bundles=len(store.ready()),
        )
        yield hosted


def _order_workers(
    settings: ServerSettings, compiled: Path | None, shared: int, check: CheckPlan | None
) -> WorkerOrder:
    if compiled is None:
        raise InputError(
            "several processes can only serve a compiled folder",
            where="`processes`",
            remedy="Save the program, and serve the folder that it was saved to.",
        )
    cores = max(1, available_cores() // settings.processes)
    return WorkerOrder(compiled, replace(settings, log=None), shared, cores, check=check)


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
