"""A server for private inference, in a thread of your process or as the whole of it.

    with sphynx.Server("compiled/digits", keys="keys/server", listen="127.0.0.1:0") as server:
        print(server.address)

It needs no torch. Nothing of the process is changed: no signal handlers, no logging; `log` takes its events. A process
that ends without `stop` ends the server's threads first: they may be in the compiled core, through which Python cannot
end them (`refilling.py`).
"""

from __future__ import annotations

import atexit
import io
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Self, TextIO

from sphynx.api.compiled import Compiled
from sphynx.errors import InputError
from sphynx.program.cost.link import parse_link
from sphynx.service.admission import Limits
from sphynx.service.events import EventLog, Scalar
from sphynx.service.hosting import Hosted, Hosting, open_server, usual_state
from sphynx.service.proxy_header import parse_networks
from sphynx.service.replicas import parse_address
from sphynx.threads import Worker

USUAL_ADDRESS = "127.0.0.1:7443"


class Server:
    """Serves a compiled network to clients whose keys the same authority issued.

    >>> with sphynx.Server("compiled/digits", keys="keys/server", listen="127.0.0.1:0") as server:
    ...     print(server.address)
    127.0.0.1:...
    """

    def __init__(
        self,
        compiled: Compiled | str | Path,
        *,
        keys: str | Path,
        listen: str = USUAL_ADDRESS,
        state: str | Path | None = None,
        limits: Limits | None = None,
        metrics_port: int | None = None,
        link: str | None = None,
        proxy_from: Sequence[str] = (),
        trust_state: bool = False,
        processes: int = 1,
        log: TextIO | None = None,
    ) -> None:
        """`compiled` is a folder, a model's name, or what `compile` made; `keys` the folder that `sphynx keys issue
        NAME --server HOST` made; port 0 in `listen` is any that is free.

        Bundles are kept in `state`: by default in the compiled folder, for a model in ./bundles/NAME, and for what has
        no folder in a temporary one. `limits` say who may do how much. With a `metrics_port` /metrics and /healthz are
        on 127.0.0.1. `link` emulates a slower one; docs/serving.md explains `proxy_from` and `trust_state`. More than
        one process (`processes`) uses more cores (docs/growth.md); they log on stderr. `log` gets one JSON object a
        line.
        """
        self._compiled, self._keys, self._state = compiled, Path(keys), None if state is None else Path(state)
        self._host, self._port = parse_address(listen)
        self._limits, self._metrics_port = limits or Limits(), metrics_port
        self._link = None if link is None else parse_link(link)
        self._proxies = parse_networks(list(proxy_from))
        self._processes = processes
        self._trust_state, self._events = trust_state, _NoEvents() if log is None else EventLog(log)
        self._open = ExitStack()
        self._hosted: Hosted | None = None
        self._worker: Worker  # of what is hosted

    def start(self) -> Self:
        """Serves in a thread of its own. When this returns clients can connect; what is wrong is raised here."""
        if self._hosted is not None:
            raise InputError("the server is already running", where=self.address, remedy="Stop it first.")
        hosted = self._open.enter_context(self._open_server())
        self._worker = Worker(hosted.server.serve)
        self._hosted = hosted
        atexit.register(self._drop)
        return self

    def stop(self) -> None:
        """Running work may finish within `limits.grace_s`. Does nothing if it is not running."""
        if self._hosted is not None:
            self._end(self._hosted.server.stop)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def serve(self) -> None:
        """Instead of `start`, if the process does nothing else: in the main thread, until Ctrl-C or SIGTERM."""
        with self._open_server(stops_by_signal=True) as hosted:
            hosted.server.serve()

    @property
    def port(self) -> int:
        return self._running.server.port

    @property
    def address(self) -> str:
        """HOST:PORT, as a client on this machine writes it."""
        return f"[{self._host}]:{self.port}" if ":" in self._host else f"{self._host}:{self.port}"

    @property
    def metrics_port(self) -> int | None:
        """The port of /metrics and /healthz, if they were asked for."""
        return self._running.metrics_port

    def _drop(self) -> None:
        """Does nothing in a forked process: it has no such thread, and the connections are not its own."""
        if self._hosted is not None and self._worker.is_alive:
            self._end(self._hosted.server.stop_now)

    def _end(self, stop: Callable[[], None]) -> None:
        stop()
        self._worker.join()  # if Ctrl-C interrupts this, the server still runs, and is dropped when the process ends
        self._hosted = None
        atexit.unregister(self._drop)
        self._open.close()

    @property
    def _running(self) -> Hosted:
        if self._hosted is None:
            raise InputError(
                "the server is not running", where="Server", remedy="Call start(), or use the server in a with block."
            )
        return self._hosted

    @contextmanager
    def _open_server(self, *, stops_by_signal: bool = False) -> Iterator[Hosted]:
        given = self._compiled
        loaded = given if isinstance(given, Compiled) else Compiled.load(given, self._tell)
        with ExitStack() as opened:
            state = self._state
            if state is None and loaded.folder is not None:
                state = usual_state(given if isinstance(given, str | Path) else loaded.folder, loaded.folder)
            if state is None:
                state = Path(opened.enter_context(tempfile.TemporaryDirectory(prefix="sphynx-bundles-")))
            asked = Hosting(
                self._keys,
                state,
                self._host,
                self._port,
                self._metrics_port,
                self._limits,
                self._link,
                self._proxies,
                self._trust_state,
                self._processes,
                loaded.folder,
            )
            yield opened.enter_context(
                open_server(
                    loaded.program,
                    loaded.weights,
                    asked,
                    self._events,
                    name=loaded.name,
                    stops_by_signal=stops_by_signal,
                )
            )

    def _tell(self, line: str) -> None:
        self._events.write("deriving", what=line)


class _NoEvents(EventLog):
    """A log for a server whose caller does not listen to its events."""

    def __init__(self) -> None:
        super().__init__(io.StringIO())

    def write(self, event: str, **fields: Scalar) -> None:
        """Keep nothing."""
