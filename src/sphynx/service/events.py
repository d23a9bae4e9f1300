"""What happened, one JSON object per line, for people and log collectors. Scalars only: no array, and so no share,
mask, image or logits, can get into a log."""

from __future__ import annotations

import contextlib
import json
import threading
import time
import traceback
from typing import TextIO

MAX_TEXT = 300
Scalar = str | int | float | bool


class EventLog:
    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()

    def write(self, event: str, **fields: Scalar) -> None:
        line: dict[str, Scalar] = {"time": round(time.time(), 3), "event": event}
        for name, value in fields.items():
            if type(value) not in (str, int, float, bool):
                raise TypeError(f"{name} is a {type(value).__name__}: only scalars are logged")
            line[name] = value[:MAX_TEXT] if isinstance(value, str) else value
        # A log that nobody takes any more (a closed pipe, a full disk) must not take the server with it.
        with self._lock, contextlib.suppress(OSError, ValueError):
            self._stream.write(json.dumps(line) + "\n")
            self._stream.flush()


def place_of(error: BaseException) -> str:
    """Where an unforeseen error came from. Not its text, which may hold values."""
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
