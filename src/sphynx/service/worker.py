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
from dataclasses import asdict, dataclass
from pathlib import Path

from sphynx.core import limit_cores
from sphynx.errors import SphynxError
from sphynx.program.cost.link import Link
from sphynx.program.files import load_program
from sphynx.program.weights import load_weights
from sphynx.protocol.shared_weights import read_shared
from sphynx.service.admission import Admission, Limits
from sphynx.service.events import EventLog
from sphynx.service.listening import READY, HandedOver
from sphynx.service.owner_link import OwnedLedger, OwnerLink, owned_places, report_metrics
from sphynx.service.proxy_header import parse_networks
from sphynx.service.revocation import SEEN, SeenNumbers
from sphynx.service.server import Server
from sphynx.service.store import Store

REPORT_S = 1.0
OWNER_LOST = 3  # the exit code


@dataclass(frozen=True)
class WorkerOrder:
    """The order to a worker: plain values and descriptors that it inherits."""

    number: int
    compiled: Path
    keys: Path
    state: Path
    limits: Limits
    cores: int
    control: int
    weights: int
    link: Link | None = None
    proxies: tuple[str, ...] = ()

    def to_text(self) -> str:
        paths = {name: str(getattr(self, name)) for name in ("compiled", "keys", "state")}
        return json.dumps({**asdict(self), **paths})

    @classmethod
    def from_text(cls, text: str) -> WorkerOrder:
        found = json.loads(text)
        for name in ("compiled", "keys", "state"):
            found[name] = Path(found[name])
        found["limits"] = Limits(**found["limits"])
        found["link"] = found["link"] and Link(**found["link"])
        found["proxies"] = tuple(found["proxies"])
        return cls(**found)


def work(order: WorkerOrder) -> None:
    limit_cores(order.cores)
    control = socket.socket(fileno=order.control)
    link = OwnerLink(control, _leave)
    program = load_program(order.compiled)
    weights, memory_bytes = load_weights(order.compiled, program), order.limits.weight_memory_bytes
    model = read_shared(order.weights, program, weights, memory_bytes=memory_bytes)
    events = EventLog(sys.stderr, worker=order.number)
    with Store(
        order.state,
        quota_bytes=order.limits.quota_bytes,
        memory_bytes=order.limits.memory_bytes,
        shared=True,
        owned_ledger=lambda holder: OwnedLedger(link, holder),
    ) as store:
        server = Server(
            model,
            store,
            keys=order.keys,
            listener=HandedOver(control, _leave, link.end_thread),
            admission=Admission(order.limits, owned_places(link)),
            events=events,
            link=order.link,
            proxies=parse_networks(list(order.proxies)),
            seen_lists=SeenNumbers(order.state / SEEN),
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
        work(WorkerOrder.from_text(sys.argv[1]))
    except SphynxError as error:
        sys.exit(f"error: {error}\n  remedy: {error.remedy}")
