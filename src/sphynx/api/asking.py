"""A client of a private inference server. It needs no torch; pictures need Pillow: `pip install pillow`.

with sphynx.Client("inference.example:7443", keys="keys/alice") as client:
    print(client.infer("cat.jpg").label)

`ahead=8` keeps 8 bundles ready, made in the background while nothing is asked (`refilling.py`).

Several servers, listed or behind one name in DNS, are replicas: the client asks one of them, and another when that one
is down (`service/replicas.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

from numpy.typing import NDArray

from sphynx.api.many import Numbered, ask_many, require_concurrency
from sphynx.api.refilling import Refill
from sphynx.config import Keywords
from sphynx.errors import ConnectionLostError, InputError, PeerGaveUpError
from sphynx.program.backends import BACKEND_CHOICES, BACKENDS, Backend, BackendChoice, check_backend
from sphynx.program.ir import Program
from sphynx.program.security import Security
from sphynx.protocol.transport import lost
from sphynx.run.update import Listener, Update, ignore
from sphynx.service.client import Client as Connection
from sphynx.service.pictures import pixels_of
from sphynx.service.prediction import Prediction
from sphynx.service.replicas import Place, Replicas, parse_servers
from sphynx.service.settings import ClientSettings
from sphynx.service.yielding import GivesWay, Urgent

if TYPE_CHECKING:
    from PIL.Image import Image

Answer = TypeVar("Answer")


class Client:
    """Connects when it is first used, or entered, and again after a connection was lost or the server left. Threads may
    share it: their calls take turns. Processes need one each, and may share keys and bundles.

    A call whose connection is lost raises; the next one continues, with another server if several are listed. What was
    burned stays burned: asking again uses another bundle.

        >>> with sphynx.Server("compiled/digits", keys="keys/server", listen="127.0.0.1:0") as server:
        ...     with sphynx.Client(server.address, keys="keys/alice") as client:
        ...         answer = client.infer("digit.png")
        >>> answer.label in "0123456789"
        True
    """

    @Keywords(ClientSettings).method
    def __init__(self, server: str | Sequence[str], settings: ClientSettings) -> None:
        """`server` is HOST:PORT, or several of them as a list or with commas; keywords are those of `ClientSettings`.

        `keys` is your folder of keys (`sphynx keys`), which also takes the bundles unless `state` names another.
        `program` chooses the one with this hash, these first digits of it, or this name. At least `ahead` bundles are
        kept ready from the first call on, made in groups where `ahead` is not much less than one, by a thread with a
        connection of its own, with what both sides have to spare. `backend` is how ReLUs run, unless a call says it:
        gc, gmw, or auto, which uses what is ready and prepares for the faster one. `wait_s` is how long ports that
        refuse are tried again: it may be just starting.
        """
        self._servers, self._settings, self._urgent = server, settings, Urgent()
        keys = Path(settings.keys)
        self._replicas = Replicas(parse_servers(server), keys=keys, wait_s=settings.wait_s, warn=settings.warn)
        self._open = partial(
            Connection,
            keys=keys,
            state=None if settings.state is None else Path(settings.state),
            program=settings.wanted,
            security=settings.security,
            ot=settings.ot,
            timeout_s=settings.timeout_s,
            trust_state=settings.trust_state,
            warn=settings.warn,
            observer=settings.observer,
        )
        self._connecting = threading.Lock()
        self._connection: Connection | None = None
        self._place: Place | None = None
        self._refill: Refill | None = None
        self._is_hung_up = False

    def _another(self) -> Client:
        """A client like this one that prepares bundles and gives way to this one's calls."""
        return Client(self._servers, **vars(replace(self._settings, ahead=0, observer=GivesWay(self._urgent))))

    def infer(self, image: str | Path | NDArray[Any] | Image, *, backend: BackendChoice | None = None) -> Prediction:
        """Ask about a picture, which the server never sees: a file, a PIL image, or a uint8 array [channels, height,
        width] (`image_shape`). Files and PIL images are resized. A program of numbers takes an array of them or a .npy
        file, clipped to its range (`program.input`). Makes a bundle first if none is ready.

        `backend` insists on a bundle for gc or for gmw; auto takes what is ready. Unless given it is the client's.
        """
        choice = self._choice(backend)
        return self._ask(lambda connection: connection.infer(pixels_of(image, connection.program), backend=choice))

    def infer_many(
        self,
        images: Iterable[str | Path | NDArray[Any] | Image],
        *,
        concurrency: int = 1,
        backend: BackendChoice | None = None,
        progress: Listener = ignore,
    ) -> Iterator[Numbered]:
        """Yield (number, answer) for each picture, as answers come; pictures are read as they are needed.

        `concurrency` is over how many connections: with more than one, answers come in another order than pictures. A
        picture whose connection breaks is asked about again; if that fails too, what failed is raised, after all
        answers that were given. `progress` is called after each; the total is 0 where `images` has no length.
        """
        require_concurrency(concurrency)
        alone = replace(self._settings, ahead=0)
        clients = [self, *(Client(self._servers, **vars(alone)) for _ in range(concurrency - 1))]
        return ask_many(clients, images, None if backend is None else self._choice(backend), progress)

    def pixels(self, image: str | Path | NDArray[Any] | Image) -> NDArray[Any]:
        """The picture as the program reads it: what `infer` asks about."""
        return pixels_of(image, self.program)

    def prepare(self, count: int, *, backend: BackendChoice | None = None, progress: Listener = ignore) -> Backend:
        """Makes `count` bundles ahead, before there is a picture; each serves one. `progress` is called after each.

        `backend` chooses how ReLUs run: gc, gmw, or auto, what is faster over the measured link. Unless given it is the
        client's. Returns the choice."""
        if count < 1:
            raise InputError(f"{count} bundles cannot be prepared", where="`count`", remedy="Give 1 or more.")
        choice = self._choice(backend)

        def report(number: int) -> None:
            progress(Update("prepare", number, count))

        return self._ask(lambda connection: connection.prepare(count, backend=choice, done=report))

    def prepare_ahead(self, pool: int = 1) -> None:
        """Makes bundles that nobody waits for, when the server has cores to spare: one, or a group where at least
        `pool` shall be ready. `Client(ahead=N)` calls this."""
        self._ask(
            lambda connection: connection.prepare(
                connection.refill_count(pool), backend=self._settings.backend, ahead=True
            )
        )

    def warm(self, *, backend: BackendChoice | None = None) -> None:
        """Load the next bundle into memory, so that the next inference with this `backend` is as quick as it can be."""
        choice = self._choice(backend)
        self._ask(lambda connection: connection.warm(backend=choice))

    @property
    def ready(self) -> int:
        """How many bundles are ready, for one picture each."""
        return self._ask(lambda connection: sum(entry.batch == 1 for entry in connection.ready))

    def ready_with(self, backend: Backend) -> int:
        """How many bundles are ready that run ReLUs this way."""
        check_backend(backend, BACKENDS, where="`backend`")
        return self._ask(
            lambda connection: sum(entry.batch == 1 and entry.backend == backend for entry in connection.ready)
        )

    @property
    def ready_ahead(self) -> int:
        """How many bundles are ready of the kind that `Client(backend=...)` asked for."""
        return self.ready if self._settings.backend == "auto" else self.ready_with(self._settings.backend)

    @property
    def image_shape(self) -> tuple[int, int, int]:
        """Channels, height and width of the images that the server's program reads."""
        return self.program.image

    @property
    def class_names(self) -> tuple[str, ...]:
        return self.program.class_names

    @property
    def program(self) -> Program:
        """The program that the server computes, without its weights: public."""
        return self._connect().program

    def list_programs(self) -> dict[str, str]:
        """List what the server serves: hashes by name."""
        found = self._replicas.connect(
            lambda place: self._open(place.host, place.port, address=place.address).list_programs()
        )[1]
        return dict(zip(found.names, found.hashes, strict=True))

    @property
    def server(self) -> str:
        """The server in use, of those that were listed."""
        self._connect()
        return str(self._place)

    @property
    def security(self) -> Security:
        """How far the server need not trust its clients: semi-honest, or malicious-client."""
        return self._connect().security

    @property
    def server_count(self) -> int:
        """How many servers were listed; a name with several addresses counts once for each."""
        return len(self._replicas.places())

    def close(self) -> None:
        """Says goodbye. Bundles are kept; a later call connects again."""
        with self._connecting:
            connection, self._connection = self._connection, None
            refill, self._refill = self._refill, None
        if refill is not None:
            refill.close()
        if connection is not None:
            connection.__exit__(None, None, None)

    def __enter__(self) -> Self:
        self._connect()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
            return
        with self._connecting:
            refill, self._refill = self._refill, None
        if refill is not None:
            refill.close()
        self._give_up(self._connection)

    def _choice(self, backend: BackendChoice | None) -> BackendChoice:
        if backend is None:
            return self._settings.backend
        check_backend(backend, BACKEND_CHOICES, where="`backend`")
        return backend

    def _ask(self, ask: Callable[[Connection], Answer]) -> Answer:
        connection = self._connect()
        if self._is_hung_up:
            raise lost("the client closed the connection")
        try:
            with self._urgent.running():
                return ask(connection)
        except ConnectionLostError:
            self._give_up(connection, is_down=True)  # the next call connects again
            raise
        except PeerGaveUpError:
            self._give_up(connection)
            raise

    def _connect(self) -> Connection:
        with self._connecting:
            before = self._connection
        if before is not None and before.has_ended():  # found out before a bundle is burned for it
            self._give_up(before)
        elif before is not None and before.has_renewed_keys():  # the old ones may expire while it is open
            self._give_up(before, leaves=True)
        with self._connecting:
            if self._connection is not None:
                return self._connection
            self._place, connection = self._replicas.connect(self._enter)
            self._connection = connection
            if self._settings.ahead and self._refill is None:
                self._refill = Refill(
                    self._another(), self._settings.ahead, urgent=self._urgent, warn=self._settings.warn
                )
            return connection

    def _hang_up(self) -> bool:
        """Hang up for good, from another thread: a call that runs fails at its next message, others before their
        first. Return whether that is soon over: a call that still connects is not, and does nothing after that."""
        self._is_hung_up = True  # first: whoever connects just now looks at it afterwards
        connection = self._connection  # without the lock, which is held for as long as connecting takes
        if connection is not None:
            connection.hang_up()
        return connection is not None or not self._connecting.locked()

    def _enter(self, place: Place) -> Connection:
        return self._open(place.host, place.port, address=place.address).__enter__()

    def _give_up(self, connection: Connection | None, *, is_down: bool = False, leaves: bool = False) -> None:
        """End a connection; one that `leaves` says so to its server, after the calls of other threads."""
        with self._connecting:
            if connection is None or self._connection is not connection:
                return  # another thread was faster
            self._connection = None
            if is_down and self._place is not None:
                self._replicas.avoid(self._place)
        connection.__exit__(None if leaves else ConnectionLostError, None, None)
