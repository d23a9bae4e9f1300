"""Files of bundles that were used, deleted by threads.

Freeing the 70 MB of a garbled bundle takes a disk and a core longer than an inference should wait (it made one of 60 ms
one of 160). What is noted is deleted by the next `start`, or by a later one where the machine has no memory left.
"""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from pathlib import Path

from sphynx.threads import Worker


class Deletions:
    def __init__(self) -> None:
        self._noted: list[Path] = []
        self._started: list[tuple[Worker, list[Path]]] = []
        self._lock = threading.Lock()

    def note(self, path: Path) -> None:
        with self._lock:
            self._noted.append(path)

    def start(self) -> None:
        with self._lock:
            for worker, paths in [*self._started]:
                if not worker.is_alive:
                    self._started.remove((worker, paths))
                    self._noted += paths  # it found no memory to begin, or to go on with
            if self._noted:
                with contextlib.suppress(RuntimeError, MemoryError):  # the next one deletes them
                    self._started.append((Worker(partial(_delete, self._noted)), self._noted))
                    self._noted = []

    def finish(self) -> None:
        self.start()
        with self._lock:
            unfinished = list(self._started)
        for worker, _ in unfinished:
            worker.join()


def _delete(paths: list[Path]) -> None:
    """Delete the files. Those that stay in the list are still to be deleted."""
    with contextlib.suppress(IndexError):  # none is left
        while True:
            path = paths.pop()
            with contextlib.suppress(OSError):  # one that stays must not keep the others; the next start names it
                path.unlink(missing_ok=True)
