"""Log what happened, one JSON object per line, for people and log collectors. Scalars only: no array, and so no share,
mask, image or logits, can get into a log. What strangers can cause is written a few times a second and counted
beyond that: `FewLines`.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import traceback
from functools import partial
from typing import TextIO

from sphynx.threads import Worker

MAX_TEXT = 300
LINES_PER_S = 10
Scalar = str | int | float | bool


class EventLog:
    def __init__(self, stream: TextIO, **always: Scalar) -> None:
        """`always` is in every line."""
        self._stream, self._always = stream, always
        self._lock = threading.Lock()

    def write(self, event: str, **fields: Scalar) -> None:
        line: dict[str, Scalar] = {"time": round(time.time(), 3), "event": event}
        for name, value in {**self._always, **fields}.items():
            if type(value) not in (str, int, float, bool):
                raise TypeError(f"{name} is a {type(value).__name__}: only scalars are logged")
            line[name] = value[:MAX_TEXT] if isinstance(value, str) else value
        # A log that nobody takes any more (a closed pipe, a full disk) must not take the server with it.
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()


class FewLines:
    """Events of one kind: the first LINES_PER_S of a second as they are, then one line with how many more came."""

    def __init__(self, log: EventLog, event: str, *, second_s: float = 1.0) -> None:
        self._log, self._event, self._second_s = log, event, second_s
        self._lock = threading.Lock()
        self._second_ends_s = 0.0
        self._written = self._suppressed = 0

    def write(self, **fields: Scalar) -> None:
        if time.monotonic() >= self._second_ends_s:
            self.tell_suppressed()  # where there was no memory for a thread that does
        with self._lock:
            now_s = time.monotonic()
            if now_s >= self._second_ends_s:
                self._second_ends_s, self._written = now_s + self._second_s, 0
            if self._written == LINES_PER_S:
                self._suppressed += 1
                if self._suppressed == 1:
                    with contextlib.suppress(RuntimeError, MemoryError):
                        Worker(partial(self._tell_later, self._second_ends_s - now_s))
                return
            self._written += 1
        self._log.write(self._event, **fields)

    def tell_suppressed(self) -> None:
        """Tell how many lines were suppressed: at the end of the second by itself, at the end of a server at once."""
        with self._lock:
            suppressed, self._suppressed = self._suppressed, 0
        if suppressed:
            self._log.write(self._event, why=f"{suppressed} more in this second", suppressed=suppressed)

    def _tell_later(self, wait_s: float) -> None:
        time.sleep(wait_s)
        self.tell_suppressed()


def place_of(error: BaseException) -> str:
    """The place that an unforeseen error came from. Not its text, which may hold values."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
