"""Bundles made ahead while nothing else is to be done: a thread that keeps some ready, over a connection of its own.

Both sides make them with what they have to spare: the work stops between two messages while something that somebody
waits for runs (`service/yielding.py`), here the questions of the client that they are for.

The thread has left the compiled core when `close` returns, and when the interpreter ends without it: Python ends its
threads where they next want its lock, and one that has to return through compiled code then aborts the process.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable
from typing import Protocol

from sphynx.service.yielding import Urgent, on_one_core
from sphynx.threads import Worker

LOOK_S = 0.25  # for bundles that were used
LONGEST_PAUSE_S = 60.0  # after failures; the first is as long as LOOK_S, each further one twice as long
CLOSE_S = 5.0  # for the bundle that is being made


class Filled(Protocol):
    """A client of its own for the thread."""

    @property
    def ready_ahead(self) -> int: ...
    def prepare_ahead(self, pool: int = 1) -> None: ...
    def close(self) -> None: ...
    def _hang_up(self) -> bool: ...


class Refill:
    def __init__(self, client: Filled, count: int, *, urgent: Urgent, warn: Callable[[str], None]) -> None:
        """None is begun while something `urgent` runs. `warn` hears why none can be made, once for each reason."""
        self._client, self._count, self._urgent, self._warn = client, count, urgent, warn
        self._over = threading.Event()
        self._worker = Worker(self._work)
        atexit.register(self._drop)

    def close(self) -> None:
        """Finish the bundle that is being made if that does not take long, else drop it; close the connection."""
        self._over.set()
        self._worker.join(CLOSE_S)
        self._drop()
        atexit.unregister(self._drop)

    def _drop(self) -> None:
        self._over.set()
        if self._worker.is_alive and self._client._hang_up():  # not in a forked process: the connection is not its own
            self._worker.join()

    def _work(self) -> None:
        pause_s, not_before_s, back_off_s, told, has_failed = 0.0, 0.0, LOOK_S, "", False
        try:
            while not self._over.wait(pause_s):
                pause_s = LOOK_S
                try:
                    if time.monotonic() < not_before_s or self._urgent.is_running:
                        continue
                    if self._client.ready_ahead < self._count:
                        with on_one_core():
                            # After a failure one alone, for which there may be room where a group has none.
                            self._client.prepare_ahead(1 if has_failed else self._count)
                        pause_s = 0.0
                    back_off_s, told, has_failed = LOOK_S, told if has_failed else "", False
                except Exception as error:  # a full disk, a lost server: questions go on without bundles made ahead
                    if self._over.is_set():
                        return
                    has_failed, not_before_s = True, time.monotonic() + back_off_s
                    back_off_s = min(2 * back_off_s, LONGEST_PAUSE_S)
                    if str(error) != told:
                        told = str(error)
                        self._warn(f"bundles cannot be prepared ahead now: {error}")
        finally:
            self._client.close()
