"""Many pictures asked about: answers one by one as they come, over several connections, bundles in portions.

A lost connection costs the picture that was being asked about a second bundle, and nothing else: it is asked about
again, at another server where several are listed. Answers that were given before a call fails have been handed over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from functools import partial
from itertools import islice
from queue import Empty, Queue
from typing import Any, Protocol, TypeVar

from sphynx.errors import ConnectionLostError, InputError, PeerGaveUpError
from sphynx.program.backends import Backend, BackendChoice
from sphynx.run.update import Listener, Update, ignore
from sphynx.service.prediction import Prediction
from sphynx.threads import Worker

Done = TypeVar("Done")
Numbered = tuple[int, Prediction]  # the picture's place among all, from 0 on

PORTION = 8  # images at a time, however many there are: half of a group of bundles, which is less work already
LOOK_S = 0.1  # for a consumer that went away


class Asked(Protocol):
    """The client that is asked."""

    @property
    def server_count(self) -> int: ...
    @property
    def ready_ahead(self) -> int: ...
    def ready_with(self, backend: Backend, /) -> int: ...
    def prepare(self, count: int, /, *, backend: BackendChoice | None = None, progress: Listener = ...) -> Backend: ...
    def warm(self, *, backend: BackendChoice | None = None) -> None: ...
    def infer(self, image: Any, /, *, backend: BackendChoice | None = None) -> Prediction: ...
    def close(self) -> None: ...
    def _hang_up(self) -> bool: ...


class Persistent:
    """A client that tries again where a server is lost, with another one."""

    def __init__(
        self,
        client: Asked,
        backend: BackendChoice | None = None,
        prepared: Listener = ignore,
    ) -> None:
        """`prepared` hears of each bundle that is made."""
        self._client, self._backend, self._prepared = client, backend, prepared

    def ask(self, image: Any) -> Prediction:
        return self._go_on(partial(self._ask, image))

    def make_ready(self, bundles: int) -> None:
        """Make this many bundles ready; those that are ready already count."""
        self._go_on(partial(self._make_missing, bundles))

    def _ask(self, image: Any) -> Prediction:
        self._client.warm(backend=self._backend)
        return self._client.infer(image, backend=self._backend)

    def _make_missing(self, bundles: int) -> None:
        own = self._backend
        ready = self._client.ready_ahead if own is None or own == "auto" else self._client.ready_with(own)
        if bundles > ready:
            self._client.prepare(bundles - ready, backend=own, progress=self._prepared)

    def _go_on(self, work: Callable[[], Done]) -> Done:
        """Do the work; where a server is lost, do it again at another, a question with another bundle."""
        failures = 0
        while True:
            try:
                return work()
            except (ConnectionLostError, PeerGaveUpError) as error:
                failures += 1
                servers = self._client.server_count
                if failures >= (max(2, servers) if isinstance(error, ConnectionLostError) else servers):
                    raise


def ask_many(
    clients: Sequence[Asked], images: Iterable[Any], backend: BackendChoice | None, progress: Listener
) -> Iterator[Numbered]:
    """Yield the answers as they come, each with its picture's place. The first client is the caller's own; the others
    are hung up in the end."""
    total = len(images) if isinstance(images, Sized) else 0  # not known
    source = _Portions(images)
    if len(clients) == 1:
        asked = Persistent(clients[0], backend)
        for number, answer in _answered(asked, source):
            progress(Update("infer", number + 1, total))
            yield number, answer
        return
    made: Queue[Numbered | BaseException | None] = Queue(len(clients) * PORTION)
    over = threading.Event()
    workers = [Worker(partial(_work, Persistent(client, backend), source, made, over)) for client in clients]
    try:
        left, count = len(workers), 0
        while left:
            found = made.get()
            if isinstance(found, BaseException):
                raise found
            if found is None:
                left -= 1
                continue
            count += 1
            progress(Update("infer", count, total))
            yield found
    finally:
        over.set()
        for client, worker in zip(clients[1:], workers[1:], strict=True):
            if worker.is_alive:
                client._hang_up()
            else:
                client.close()
        for worker in workers:
            while not worker.join(LOOK_S):
                _drop(made)


class _Portions:
    """Pictures with their places, handed out in portions to whoever asks next."""

    def __init__(self, images: Iterable[Any]) -> None:
        self._images, self._lock = enumerate(images), threading.Lock()

    def next(self) -> list[tuple[int, Any]]:
        with self._lock:
            return list(islice(self._images, PORTION))


def _answered(asked: Persistent, source: _Portions) -> Iterator[Numbered]:
    while portion := source.next():
        asked.make_ready(len(portion))
        for number, image in portion:
            yield number, asked.ask(image)


def _work(
    asked: Persistent, source: _Portions, made: Queue[Numbered | BaseException | None], over: threading.Event
) -> None:
    try:
        for answer in _answered(asked, source):
            if over.is_set():
                return
            made.put(answer)
        made.put(None)
    except BaseException as error:  # it is raised where the answers are read
        if not over.is_set():
            made.put(error)


def _drop(made: Queue[Numbered | BaseException | None]) -> None:
    """Make room, so that a worker that waits for it sees that nobody reads any more."""
    try:
        while True:
            made.get_nowait()
    except Empty:
        pass


def require_concurrency(concurrency: int) -> None:
    if concurrency < 1:
        raise InputError(
            f"{concurrency} is not a valid number of connections", where="`concurrency`", remedy="Give 1 or more."
        )
