"""Work that nobody waits for gives way to work that somebody waits for, in the same process.

It stops between two messages while something urgent runs, and has one core, without helpers of the compiled core's
pool. A lower priority of its thread was tried and made the slowest inferences four times slower: threads share the
interpreter's lock, and probably one that the kernel did not run held it while the urgent ones waited.
"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from sphynx.core import available_cores
from sphynx.protocol.channel import Section, Span
from sphynx.system import can_pin_threads

MOST_WAIT_S = 0.5  # for each message: where something urgent always runs it goes on, slowly, and its peer stays
_turns = itertools.count()


class Urgent:
    """The work that somebody waits for: how much of it runs now."""

    def __init__(self) -> None:
        self._running = 0
        self._changed = threading.Condition()

    @property
    def is_running(self) -> bool:
        return self._running > 0

    @contextmanager
    def running(self) -> Iterator[None]:
        with self._changed:
            self._running += 1
        try:
            yield
        finally:
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def give_way(self) -> None:
        """Returns when nothing urgent runs, or after a while."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, MOST_WAIT_S)


class GivesWay:
    """Observes a channel, and holds its thread up after each message while something urgent runs."""

    def __init__(self, urgent: Urgent) -> None:
        self._urgent = urgent

    def entered(self, section: Section) -> None:
        pass

    def left(self, span: Span) -> None:
        pass

    def sent(self, section: Section, parts: Sequence[memoryview]) -> None:
        pass

    def received(self, section: Section, payload: bytearray) -> None:  # noqa: ARG002 - the moment alone counts
        self._urgent.give_way()


@contextmanager
def on_one_core() -> Iterator[None]:
    """The calling thread, another core each time. On Linux only."""
    if not can_pin_threads() or available_cores() == 1:
        yield
        return
    thread = threading.get_native_id()
    allowed = sorted(os.sched_getaffinity(thread))
    with suppress(OSError):
        os.sched_setaffinity(thread, {allowed[next(_turns) % len(allowed)]})
    try:
        yield
    finally:
        with suppress(OSError):
            os.sched_setaffinity(thread, allowed)
