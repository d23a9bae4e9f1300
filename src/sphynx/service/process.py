"""A server as a process of its own, for demonstrations, checks and benchmarks: `python -m sphynx.service.process JSON`.

The JSON is what `ServerOrder.to_text` wrote. It logs on stderr as `sphynx serve` does, and stops by SIGTERM.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from sphynx.errors import SphynxError
from sphynx.program.cost.link import Link
from sphynx.program.files import load_program
from sphynx.program.weights import load_weights
from sphynx.service.admission import Limits
from sphynx.service.events import EventLog
from sphynx.service.hosting import Hosting, open_server


@dataclass(frozen=True)
class ServerOrder:
    """The order to such a process: what it serves, with which keys; plain values."""

    compiled: Path
    keys: Path
    state: Path
    limits: Limits
    link: Link | None = None
    processes: int = 1

    def to_text(self) -> str:
        paths = {name: str(getattr(self, name)) for name in ("compiled", "keys", "state")}
        link = self.link and asdict(self.link)
        return json.dumps({**paths, "limits": asdict(self.limits), "link": link, "processes": self.processes})

    @classmethod
    def from_text(cls, text: str) -> ServerOrder:
        found = json.loads(text)
        compiled, keys, state = (Path(found[name]) for name in ("compiled", "keys", "state"))
        link = found["link"] and Link(**found["link"])
        return cls(compiled, keys, state, Limits(**found["limits"]), link, found["processes"])


def main() -> None:
    order = ServerOrder.from_text(sys.argv[1])
    program = load_program(order.compiled)
    hosting = Hosting(
        order.keys,
        order.state,
        limits=order.limits,
        link=order.link,
        processes=order.processes,
        compiled=order.compiled,
    )
    weights, events = load_weights(order.compiled, program), EventLog(sys.stderr)
    with open_server(program, weights, hosting, events, stops_by_signal=True) as hosted:
        hosted.server.serve()


if __name__ == "__main__":
    try:
        main()
    except SphynxError as error:
        sys.exit(f"error: {error}\n  remedy: {error.remedy}")
