"""A client's standing on one connection: whether it failed a check, here or on another connection since this one began.

Who fails a check has changed software, or a broken one, and may know something of the offset that its bundles were made
with. It is struck (`strikes.py`) before it can see anything, then loses all bundles that it has ready, and every
connection of its name ends at its next request. A bundle that becomes ready later than that, on another connection, is
burned there: it asks for its standing again when its bundle is ready.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sphynx.errors import FailedCheckError
from sphynx.service.events import EventLog
from sphynx.service.metrics import Metrics
from sphynx.service.store import Store
from sphynx.service.strikes import Strikes
from sphynx.service.tls import Peer


class Standing:
    def __init__(
        self, peer: Peer, program: str, store: Store, strikes: Strikes, events: EventLog, metrics: Metrics
    ) -> None:
        """`program` is the hash of the one that is served."""
        self._peer, self._program, self._store = peer, program, store
        self._strikes, self._events, self._metrics = strikes, events, metrics
        self._known: int | None = None  # strikes at the first `check`
        self._has_failed = False

    def check(self) -> None:
        """Refuse a client that is locked out, or that failed a check since the first time that this was called."""
        self._strikes.check(self._peer.name, self._known)
        if self._known is None:
            self._known = self._strikes.count(self._peer.name)

    @contextmanager
    def judging(self) -> Iterator[None]:
        """Find a verdict inside, the only one on this client at this time, unless it is void."""
        with self._strikes.judging(self._peer.name, self._known or 0):
            try:
                yield
            except FailedCheckError as error:
                self.note(error)
                raise

    def note(self, error: BaseException) -> None:
        """Strike the client if that is what it failed by, once."""
        if self._has_failed or not isinstance(error, FailedCheckError):
            return
        self._has_failed = True
        try:
            strikes = self._strikes.add(self._peer.name, error.what)
        finally:
            ready = self._store.ready(owner=self._peer.identity, program=self._program)
            self._store.discard(*(entry.bundle_id for entry in ready))
        self._metrics.add("strikes_total")
        self._events.write("strike", client=self._peer.name, why=error.what, strikes=strikes)
