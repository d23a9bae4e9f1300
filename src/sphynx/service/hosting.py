"""Compiled programs, served: what a server opens before it listens, in which order, and closes again.

with open_server([Served(program, weights, state)], ServerSettings(keys=keys, state=state), events) as hosted:
    hosted.server.serve()  # until another thread calls hosted.server.stop(), or a signal does
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.folder import content_hash
from sphynx.program.ir import Program
from sphynx.program.naming import short_hash
from sphynx.program.revealing import revealed
from sphynx.protocol.channel import WIRE_VERSION
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.shared_weights import write_shared
from sphynx.protocol.verify.plan import BUNDLE_IMAGES, CheckPlan, plan_security
from sphynx.service.admission import Admission
from sphynx.service.credentials import check_server_keys
from sphynx.service.events import EventLog
from sphynx.service.fleet import Fleet
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.listening import PortListener
from sphynx.service.monitor import Monitor, read_token
from sphynx.service.revocation import SEEN, SeenNumbers
from sphynx.service.server import Offer, Server
from sphynx.service.session import SERVICE_VERSION
from sphynx.service.settings import ServerSettings
from sphynx.service.store import Store
from sphynx.service.strikes import Strikes
from sphynx.service.worker import WorkerOrder
from sphynx.threads import available_cores
from sphynx.version import __version__

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


@dataclass(frozen=True)
class Served:
    """A program to serve, and where its bundles are. Several processes read it from the folder `compiled`."""

    program: Program
    weights: Mapping[str, Array] = field(repr=False)
    state: Path
    name: str = ""  # by which clients may ask for it, and for the log
    compiled: Path | None = None


@contextmanager
def open_server(
    served: Sequence[Served], settings: ServerSettings, events: EventLog, *, stops_by_signal: bool = False
) -> Iterator[Hosted]:
    """Listening already: who connects waits until `serve` is called.

    `stops_by_signal`, in the main thread of a process that does nothing else: the first Ctrl-C or SIGTERM lets running
    work finish, the second one stops at once.
    """
    keys, state, limits = Path(settings.keys), settings.state_folder, settings.limits
    check_server_keys(keys)
    served = [replace(one, program=revealed(one.program, settings.reveal, settings.margin)) for one in served]
    if settings.processes > 1 and len(served) > 1:
        raise InputError(
            "several processes serve one program",
            where="`processes`",
            remedy="Start a server for each program, or serve them all with one process.",
        )
    with ExitStack() as opened:
        offers = [_open_offer(one, settings, events, opened) for one in served]
        ready_bundles = [len(offer.store.ready()) for offer in offers]
        host, port = settings.address
        listener = PortListener(host, port)
        opened.callback(listener.close)
        seen, strikes = SeenNumbers(state / SEEN), Strikes(settings.strikes_file)
        server: Server | Fleet
        if settings.processes == 1:
            admission = Admission(limits)
            server = Server(
                offers,
                keys=keys,
                listener=listener,
                admission=admission,
                events=events,
                link=settings.emulated_link,
                proxies=settings.proxies,
                seen_lists=seen,
                strikes=strikes,
                ot=settings.ot,
                drains=settings.drain,
            )
        else:
            offer = offers.pop()
            shared, check, store = write_shared(offer.model, served[0].weights), offer.model.check, offer.store
            opened.callback(os.close, shared)
            del offer  # the workers read the shared weights
            fresh = FreshKeys(keys, seen, lambda why: events.write("revocation_list", why=why))
            order = _order_workers(settings, served[0], shared, check)
            server = Fleet(order, settings.processes, store, listener, fresh, events)
            opened.callback(server.close)
            server.start()
        hosted = Hosted(server, None)
        told: dict[str, int] = {}
        server.metrics.add("build_info", version=__version__, wire=str(WIRE_VERSION), service=str(SERVICE_VERSION))
        for one in served:
            program = short_hash(one.program.content_hash)
            server.metrics.add("program_info", program=program, name=_name_of(one), security=settings.security)
        if settings.metrics_address is not None:
            monitor = Monitor(
                settings.metrics_address,
                server.render_metrics,
                server.is_healthy,
                token=read_token(Path(settings.metrics_token)) if settings.metrics_token else "",
                keys=server.keys if settings.metrics_tls else None,
            )
            opened.callback(monitor.close)
            hosted, told = Hosted(server, monitor.port), {"metrics_port": monitor.port}
        if stops_by_signal:  # before the log says that it serves
            _stop_by_signal(server)
        for one, ready in zip(served, ready_bundles, strict=True):
            events.write(
                "serving",
                host=host,
                port=listener.port,
                **told,
                program=one.program.content_hash,
                name=_name_of(one),
                security=settings.security,
                reveal=settings.reveal,
                bundles=ready,
            )
        yield hosted


def _open_offer(served: Served, settings: ServerSettings, events: EventLog, opened: ExitStack) -> Offer:
    limits, weights = settings.limits, served.weights
    images = max(BUNDLE_IMAGES, limits.batch)
    check = plan_security(settings.security, served.program, weights, images=images)
    model = ServerModel(served.program, dict(weights), memory_bytes=limits.weight_memory_bytes, check=check)
    store = opened.enter_context(
        Store(
            served.state,
            quota_bytes=limits.quota_bytes,
            memory_bytes=limits.memory_bytes if settings.processes == 1 else 0,
            weights_hash=content_hash(weights),
            check_plan=str(check or ""),
            shared=True,
            trust=settings.trust_state,
            tell=lambda why: events.write("discarded", why=why),
        )
    )
    return Offer(model, store, _name_of(served))


def _name_of(served: Served) -> str:
    return served.name or served.program.name


def _order_workers(settings: ServerSettings, served: Served, shared: int, check: CheckPlan | None) -> WorkerOrder:
    compiled = served.compiled
    if compiled is None:
        raise InputError(
            "several processes can only serve a compiled folder",
            where="`processes`",
            remedy="Save the program, and serve the folder that it was saved to.",
        )
    cores = max(1, available_cores() // settings.processes)
    return WorkerOrder(compiled, replace(settings, log=None), shared, cores, check=check, name=_name_of(served))


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
