"""A server as a process of its own, for demonstrations, checks and benchmarks: `python -m sphynx.service.process JSON`.

The JSON is a `ServerOrder`'s. It logs on stderr as `sphynx serve` does, and stops by SIGTERM or when its standard input
ends: a pipe from the process that started it ends with that process, however that ends. Started without a standard
input it stops by SIGTERM alone.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from sphynx.errors import SphynxError
from sphynx.program.folder import load_compiled
from sphynx.record import Record
from sphynx.service.events import EventLog
from sphynx.service.hosting import Served, open_server
from sphynx.service.settings import ServerSettings


@dataclass(frozen=True)
class ServerOrder(Record):
    """The order to such a process: what it serves, and how."""

    compiled: Path
    settings: ServerSettings


def main() -> None:
    if sys.stdin is not None:  # else number 0 is free, and whatever is opened next may take it
        threading.Thread(target=_stop_with, args=(os.dup(0),), name="sphynx-starter", daemon=True).start()
    order = ServerOrder.from_json(json.loads(sys.argv[1]))
    program, weights = load_compiled(order.compiled)
    events = EventLog(sys.stderr)
    served = Served(program, weights, order.settings.state_folder, compiled=order.compiled)
    with open_server([served], order.settings, events, stops_by_signal=True) as hosted:
        hosted.server.serve()


def _stop_with(given: int) -> None:
    while os.read(given, 4096):  # not `sys.stdin`, whose lock a daemon thread would hold at the end
        pass
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    try:
        main()
    except SphynxError as error:
        sys.exit(f"error: {error}\n  remedy: {error.remedy}")
