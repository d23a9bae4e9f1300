"""Which processes use a folder of bundles now. Each keeps a file of its own locked for as long as it lives.

    FOLDER/lock          locked for moments: by whoever opens the folder, or adds a bundle to it
    FOLDER/holders/ID    locked by the holder with this name until it ends, however it ends

The kernel gives a lock back when its process is gone, so nobody has to be believed: a name whose file can be locked
belongs to nobody who lives. Two stores in one process are two holders.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sphynx import system
from sphynx.errors import SphynxError

LOCK, HOLDERS = "lock", "holders"
WAIT_S = 60.0  # for another process to save one bundle
LOOK_AGAIN_S = 0.005
_NAME_BYTES = 8
_ENTERING = ".new"


class Holders:
    def __init__(self, folder: Path) -> None:
        self.name = os.urandom(_NAME_BYTES).hex()
        self._folder, self._files = folder, folder / HOLDERS
        self._changing = threading.Lock()  # a flock is the file's, not the thread's
        self._mine: int | None = None
        self._files.mkdir(mode=0o700, exist_ok=True)
        self._lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """No other thread or process is inside its own `alone` meanwhile."""
        with self._changing:
            deadline = time.monotonic() + WAIT_S
            while not system.try_lock(self._lock):
                if time.monotonic() > deadline:
                    raise SphynxError(
                        f"another process has kept these bundles locked for {WAIT_S:.0f} s",
                        where=str(self._folder),
                        remedy="End it if it hangs, or give this one a folder of its own: `state=DIR`.",
                    )
                time.sleep(LOOK_AGAIN_S)
            try:
                yield
            finally:
                system.unlock(self._lock)

    def enter(self) -> None:
        """Inside `alone`. The file gets its name once it is locked: nobody finds it and takes it for a dead one's."""
        for left_behind in self._files.glob(f"*{_ENTERING}"):
            left_behind.unlink(missing_ok=True)
        entering = self._files / f"{self.name}{_ENTERING}"
        self._mine = os.open(entering, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        system.lock(self._mine)
        entering.rename(self._files / self.name)

    def live(self) -> set[str]:
        """This one and the others. To find out whose work is over, read the work first and this afterwards."""
        found = set()
        for path in self._files.iterdir():
            if path.suffix == _ENTERING:
                continue
            with contextlib.suppress(FileNotFoundError):
                if path.name == self.name or _is_locked(path):
                    found.add(path.name)
                else:
                    path.unlink(missing_ok=True)
        return found

    def leave(self) -> None:
        if self._mine is not None:
            (self._files / self.name).unlink(missing_ok=True)
            os.close(self._mine)
            self._mine = None
        os.close(self._lock)


def _is_locked(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return not system.try_lock(descriptor, shared=True)  # so that two who look at once do not deceive each other
    finally:
        os.close(descriptor)
