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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from sphynx.api.compiled import Compiled
from sphynx.config import Keywords
from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.ir import Program
from sphynx.service.events import EventLog, Scalar
from sphynx.service.hosting import Hosted, Served, open_server, usual_state
from sphynx.service.readiness import Finding, check_deployment
from sphynx.service.settings import ServerSettings
from sphynx.threads import Worker
from sphynx.zoo.by_name import load_by_name


class Server:
    """Serves a compiled network to clients whose keys the same authority issued.

    >>> with sphynx.Server("compiled/digits", keys="keys/server", listen="127.0.0.1:0") as server:
    ...     print(server.address)
    127.0.0.1:...
    """

    @Keywords(ServerSettings).method
    def __init__(
        self, compiled: Compiled | str | Path | Sequence[Compiled | str | Path], settings: ServerSettings
    ) -> None:
        """`compiled` is a folder, a model's name, or a compiled network, or several of them, which clients choose from
        by name; keywords are those of `ServerSettings`.

        `keys` is the server's folder of keys (`sphynx keys`); port 0 in `listen` is any that is free.
        Bundles are kept in `state`: by default in the compiled folder, for a model in ./bundles/NAME, and for what has
        no folder in a temporary one. With `metrics` /metrics and /healthz are at that address. docs/serving.md
        explains `proxy_from` and `trust_state`, docs/growth.md `processes`.
        """
        several = isinstance(compiled, Sequence) and not isinstance(compiled, str)
        self._compiled: list[Compiled | str | Path] = list(compiled) if several else [compiled]  # type: ignore[arg-type, list-item]  # mypy does not narrow by `several`
        self._settings = settings
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

    def check(self) -> tuple[Finding, ...]:
        """Look at all that the server needs, without starting it or changing anything: keys, program, folders and
        addresses. Every part is looked at, whatever is wrong with others."""
        settings = self._settings
        if settings.state is None:
            settings = replace(settings, state=Path.cwd())  # a folder of programs, or a model's below this one

        def load(given: Compiled | str | Path) -> tuple[Program, Mapping[str, Array]]:
            _folder, program, weights = self._load(given)
            return program, weights

        return check_deployment([partial(load, given) for given in self._compiled], settings)

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
        with ExitStack() as opened:
            settings = self._settings
            served = self._load_all()
            if settings.state is None:
                state = served[0].state
                if state == Path():
                    temporary = tempfile.TemporaryDirectory(prefix="sphynx-bundles-")
                    state = Path(opened.enter_context(temporary))
                settings, served = replace(settings, state=state), [replace(served[0], state=state)]
            yield opened.enter_context(open_server(served, settings, self._events, stops_by_signal=stops_by_signal))

    def _load_all(self) -> list[Served]:
        """Load what is served, each with its folder of bundles; `Path()` stands for a temporary one."""
        found = []
        for given in self._compiled:
            folder, program, weights = self._load(given)
            if isinstance(given, Compiled):
                name, asked_for = given.name, given.folder
            else:  # several are named as their operator does: by their folders or models
                asked_for = Path(given)
                name = (program.name if len(self._compiled) == 1 else "") or asked_for.resolve().name
            found.append(Served(program, weights, self._state_of(asked_for, folder, name), name, folder))
        names, hashes = [one.name for one in found], [one.program.content_hash for one in found]
        if len(set(names)) < len(names) or len(set(hashes)) < len(hashes):
            same = "have the same name" if len(set(names)) < len(names) else "differ only in their weights"
            raise InputError(
                f"two programs {same} ({', '.join(names)})",
                where="`compiled`",
                remedy="Start a server for each, or give them names that differ, so that clients can tell them apart.",
            )
        return found

    def _load(self, given: Compiled | str | Path) -> tuple[Path | None, Program, Mapping[str, Array]]:
        """Load a program and its weights, and find the folder that they are in."""
        if isinstance(given, Compiled):
            return given.folder, given.program, given.weights
        return load_by_name(given, lambda line: self._events.write("deriving", what=line))

    def _state_of(self, asked_for: Path | None, folder: Path | None, name: str) -> Path:
        given = self._settings.state
        if len(self._compiled) > 1:
            if given is None:
                raise InputError(
                    "several programs share one folder: for bundles, strikes and lists of revoked keys",
                    where="`state`",
                    remedy="Give it: `state=DIR`.",
                )
            return Path(given) / Path(asked_for or name).resolve().name
        if given is not None:
            return Path(given)
        return Path() if asked_for is None or folder is None else usual_state(asked_for, folder)


class _NoEvents(EventLog):
    """A log for a server whose caller does not listen to its events."""

    def __init__(self) -> None:
        super().__init__(io.StringIO())

    def write(self, event: str, **fields: Scalar) -> None:
        """Keep nothing."""
