"""Threads whose start cannot hang.

`threading.Thread.start` waits until the new thread says that it runs. A thread that finds no memory dies before it can
say so, and whoever started it waits for ever, with every lock and place that it holds. A `Worker` is not waited for.
It may therefore end without having begun. A `Helper`'s calls are made by whoever asked for them, where it does not.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
import weakref
from _thread import start_new_thread
from collections.abc import Callable

_LOOK_AGAIN_S, _LOOK_UNASKED_S = 0.05, 1.0


def available_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _Life:
    """Held by the thread alone, so it goes with the thread, also with one that dies without memory for a last word."""


class Worker:
    """One call in a thread of its own, which does not keep the process from ending. Started at once: a RuntimeError or
    MemoryError says that the machine has none left."""

    def __init__(self, call: Callable[[], None]) -> None:
        life = _Life()
        self._life = weakref.ref(life)
        self._running = threading.Lock()  # not an event: to release a lock takes no memory
        self._running.acquire()
        self._process = os.getpid()
        self.has_begun = False
        start_new_thread(self._run, (call, life))

    @property
    def is_alive(self) -> bool:
        if os.getpid() != self._process:
            return False  # it was not copied with the process
        return self._running.locked() and self._life() is not None

    def join(self, timeout_s: float | None = None) -> bool:
        """Wait up to `timeout_s`, or without limit; return whether it ended."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self.is_alive:
            left_s = _LOOK_AGAIN_S if deadline is None else min(_LOOK_AGAIN_S, deadline - time.monotonic())
            if left_s <= 0:
                return False
            if self._running.acquire(timeout=left_s):
                self._running.release()
        return True

    def _run(self, call: Callable[[], None], _life: _Life) -> None:
        self.has_begun = True
        try:
            call()
        finally:
            self._running.release()


class Helper:
    """Makes calls in a thread of its own, one after the other, for a `with` block. What it has not begun when somebody
    wants the result, that one does."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Call] = queue.SimpleQueue()
        self._is_over = False
        self._worker: Worker | None = None

    def __enter__(self) -> Helper:
        try:
            self._worker = Worker(self._work)
        except (RuntimeError, MemoryError):
            self._worker = None
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        if self._worker is not None:
            with contextlib.suppress(MemoryError):
                self._calls.put(Call(lambda: None, None))  # so that it looks at once
            self._worker.join()

    def begin(self, call: Callable[[], None]) -> Call:
        begun = Call(call, self._worker)
        self._calls.put(begun)
        return begun

    def _work(self) -> None:
        while not self._is_over:
            with contextlib.suppress(queue.Empty):
                self._calls.get(timeout=_LOOK_UNASKED_S).make()


class Call:
    """Made once, by the helper or by `finish`."""

    def __init__(self, call: Callable[[], None], worker: Worker | None) -> None:
        self._call, self._worker = call, worker
        self._is_claimed, self._running = threading.Lock(), threading.Lock()
        self._running.acquire()
        self._failure: BaseException | None = None

    def make(self) -> None:
        """Make the call, unless somebody does or did."""
        if self._is_claimed.acquire(blocking=False):
            try:
                self._call()
            except BaseException as error:
                self._failure = error
            finally:
                self._running.release()

    def finish(self) -> None:
        """Returns when the call has; raises what it raised."""
        self.make()
        while not self._running.acquire(timeout=_LOOK_AGAIN_S):
            if self._worker is None or not self._worker.is_alive:
                raise MemoryError("the thread that made this call has died")
        self._running.release()
        if self._failure is not None:
            raise self._failure
