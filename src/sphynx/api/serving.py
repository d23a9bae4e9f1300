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
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

from sphynx.api.compiled import Compiled
from sphynx.config import Keywords
from sphynx.errors import InputError
from sphynx.run.update import Update
from sphynx.service.events import EventLog, Scalar
from sphynx.service.hosting import Hosted, open_server, usual_state
from sphynx.service.settings import ServerSettings
from sphynx.threads import Worker


class Server:
    """Serves a compiled network to clients whose keys the same authority issued.

    >>> with sphynx.Server("compiled/digits", keys="keys/server", listen="127.0.0.1:0") as server:
    ...     print(server.address)
    127.0.0.1:...
    """

    @Keywords(ServerSettings).method
    def __init__(self, compiled: Compiled | str | Path, settings: ServerSettings) -> None:
        """`compiled` is a folder, a model's name, or a compiled network; keywords are those of `ServerSettings`.

        `keys` is the folder that `sphynx keys issue NAME --server HOST` made; port 0 in `listen` is any that is free.
        Bundles are kept in `state`: by default in the compiled folder, for a model in ./bundles/NAME, and for what has
        no folder in a temporary one. With a `metrics_port` /metrics and /healthz are on 127.0.0.1. docs/serving.md
        explains `proxy_from` and `trust_state`, docs/growth.md `processes`.
        """
        self._compiled, self._settings = compiled, settings
        self._events = _NoEvents() if settings.log is None else EventLog(settings.log)
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
        host, _ = self._settings.address
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

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
        loaded = given if isinstance(given, Compiled) else Compiled.load(given, self._report)
        with ExitStack() as opened:
            settings = self._settings
            if settings.state is None and loaded.folder is not None:
                asked_for = given if isinstance(given, str | Path) else loaded.folder
                settings = replace(settings, state=usual_state(asked_for, loaded.folder))
            if settings.state is None:
                temporary = tempfile.TemporaryDirectory(prefix="sphynx-bundles-")
                settings = replace(settings, state=opened.enter_context(temporary))
            yield opened.enter_context(
                open_server(
                    loaded.program,
                    loaded.weights,
                    settings,
                    self._events,
                    compiled=loaded.folder,
                    name=loaded.name,
                    stops_by_signal=stops_by_signal,
                )
            )

    def _report(self, update: Update) -> None:
        self._events.write("deriving", what=update.note)


class _NoEvents(EventLog):
    """A log for a server whose caller does not listen to its events."""

    def __init__(self) -> None:
        super().__init__(io.StringIO())

    def write(self, event: str, **fields: Scalar) -> None:
        """Keep nothing."""
