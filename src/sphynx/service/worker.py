"""One of the processes of a server: `python -m sphynx.service.worker JSON`, started by `fleet.py`.

It shakes hands and leads conversations on sockets that the owner hands over, with prepared weights that all workers
share. The ledger, the quotas and the places for work are the owner's (`owner.py`); if that is gone, this ends at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from sphynx.core import limit_cores
from sphynx.errors import SphynxError
from sphynx.program.folder import load_compiled
from sphynx.program.revealing import revealed
from sphynx.protocol.shared_weights import read_shared
from sphynx.protocol.verify.plan import CheckPlan
from sphynx.record import Record
from sphynx.service.admission import Admission
from sphynx.service.events import EventLog
from sphynx.service.listening import READY, HandedOver
from sphynx.service.owner_link import OwnedLedger, OwnerLink, owned_places, report_metrics
from sphynx.service.revocation import SEEN, SeenNumbers
from sphynx.service.server import Offer, Server
from sphynx.service.settings import ServerSettings
from sphynx.service.store import Store
from sphynx.service.strikes import Strikes

REPORT_S = 1.0
OWNER_LOST = 3  # the exit code


@dataclass(frozen=True)
class WorkerOrder(Record):
    """The order to a worker: what it serves and how, and descriptors that it inherits."""

    compiled: Path
    settings: ServerSettings
    weights: int
    cores: int
    check: CheckPlan | None = None
    number: int = 0
    control: int = -1
    name: str = ""  # of the program


def work(order: WorkerOrder) -> None:
    limit_cores(order.cores)
    settings, limits, state = order.settings, order.settings.limits, order.settings.state_folder
    control = socket.socket(fileno=order.control)
    link = OwnerLink(control, _leave)
    compiled, weights = load_compiled(order.compiled)
    program = revealed(compiled, settings.reveal, settings.margin)
    model = read_shared(order.weights, program, weights, memory_bytes=limits.weight_memory_bytes, check=order.check)
    events = EventLog(sys.stderr, worker=order.number)
    with Store(
        state,
        quota_bytes=limits.quota_bytes,
        memory_bytes=limits.memory_bytes,
        shared=True,
        owned_ledger=lambda holder: OwnedLedger(link, holder),
    ) as store:
        server = Server(
            [Offer(model, store, order.name)],
            keys=Path(settings.keys),
            listener=HandedOver(control, _leave, link.end_thread),
            admission=Admission(limits, owned_places(link)),
            events=events,
            link=settings.emulated_link,
            proxies=settings.proxies,
            seen_lists=SeenNumbers(state / SEEN),
            strikes=Strikes(settings.strikes_file),
            ot=settings.ot,
            drains=settings.drain,
        )
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner
        signal.signal(signal.SIGTERM, lambda *_: server.stop())
        signal.set_wakeup_fd(server.wake_descriptor, warn_on_full_buffer=False)
        threading.Thread(target=_report, args=(link, server), name="sphynx-report", daemon=True).start()
        control.send(READY)
        server.serve()
        report_metrics(link, server.metrics_values())


def _report(link: OwnerLink, server: Server) -> None:
    while not server.has_stopped.wait(REPORT_S):
        with contextlib.suppress(SphynxError):
            report_metrics(link, server.metrics_values())


def _leave() -> None:
    """Without the owner nothing may go on: no bundle could be burned."""
    os._exit(OWNER_LOST)


if __name__ == "__main__":
    try:
        work(WorkerOrder.from_json(json.loads(sys.argv[1])))
    except SphynxError as error:
        sys.exit(f"error: {error}\n  remedy: {error.remedy}")
