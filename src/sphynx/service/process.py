"""A server as a process of its own, for demonstrations, checks and benchmarks: `python -m sphynx.service.process JSON`.

The JSON is a `ServerOrder`'s. It logs on stderr as `sphynx serve` does, and stops by SIGTERM.
"""

from __future__ import annotations

import json
import sys
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
    order = ServerOrder.from_json(json.loads(sys.argv[1]))
    program, weights = load_compiled(order.compiled)
    events = EventLog(sys.stderr)
    served = Served(program, weights, order.settings.state_folder, compiled=order.compiled)
    with open_server([served], order.settings, events, stops_by_signal=True) as hosted:
        hosted.server.serve()


if __name__ == "__main__":
    try:
        main()
    except SphynxError as error:
        sys.exit(f"error: {error}\n  remedy: {error.remedy}")
