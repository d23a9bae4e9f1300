"""How many bundles a ledger has burned, noted where no restored folder reaches: in memory, until the machine restarts.

    RUNTIME/ID    20 digits: the burns; then the ledger's path, for whoever sweeps up

An older state that was put back into the same files looks like the original, but it lacks burns. The note does not: it
is in this process and in a file system that the machine keeps in memory, /dev/shm or what systemd made for the service.
It is raised after a burn is on the disk and before the burn is told to anybody, so a ledger that is behind its note was
set back. Where the note itself is gone, nothing is known: logging out, or a new container, may have taken it.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
from pathlib import Path

from sphynx import system

RUNTIME_VARIABLE = "RUNTIME_DIRECTORY"  # systemd's, for a service
_ID_BYTES, _DIGITS = 16, 20
SWEPT_AFTER_S = (
    86_400.0  # unused: a folder that is being moved has no ledger where the note says until it is opened again
)


def new_id() -> str:
    """Draw the name of a ledger's note. Unlike its path it stays when the folder is moved."""
    return os.urandom(_ID_BYTES).hex()


class Waterline:
    """The note of one ledger, for all threads of this process and beside other processes."""

    def __init__(self, ledger_id: str, ledger: Path) -> None:
        self._ledger = ledger.absolute()
        self._lock = threading.Lock()
        self._seen = -1
        self._note: int | None = None
        with contextlib.suppress(OSError):
            folder = _private_folder()
            if folder is not None:
                self._note = os.open(folder / ledger_id, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
                _sweep(folder, but=ledger_id)

    @property
    def is_kept(self) -> bool:
        """True if this machine has a place for notes."""
        return self._note is not None

    def level(self) -> int | None:
        """Return the most burns that anybody noted, None if nobody did."""
        with self._lock:
            level = max(self._seen, self._read())
        return level if level >= 0 else None

    def raise_to(self, burns: int) -> None:
        with self._lock:
            self._seen = max(self._seen, burns)
            if self._note is None:
                return
            system.lock(self._note)  # other processes may have burned more meanwhile
            try:
                if self._read() <= burns:  # with the path, which may be another by now
                    os.pwrite(self._note, f"{burns:0{_DIGITS}d} {self._ledger}\n".encode(errors="surrogateescape"), 0)
            finally:
                system.unlock(self._note)

    def close(self) -> None:
        """Leave the note where it is: it is for whoever opens the ledger next."""
        with self._lock:
            if self._note is not None:
                os.utime(self._note)  # the folder may be moved next
                os.close(self._note)
                self._note = None

    def _read(self) -> int:
        if self._note is None:
            return -1
        digits = os.pread(self._note, _DIGITS, 0)
        return int(digits) if len(digits) == _DIGITS and digits.isdigit() else -1


def _private_folder() -> Path | None:
    """One that nobody else can write to: the place itself may be everybody's."""
    given = os.environ.get(RUNTIME_VARIABLE, "").partition(":")[0]
    folder = Path(given) / "sphynx" if given else system.SHARED_MEMORY / f"sphynx-{os.geteuid()}"
    if not folder.parent.is_dir():
        return None
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077
    return folder if is_ours else None


def _sweep(folder: Path, but: str) -> None:
    """Notes of ledgers that are gone would stay until the machine restarts."""
    unused_since = time.time() - SWEPT_AFTER_S
    for note in folder.iterdir():
        with contextlib.suppress(OSError):
            if note.stat().st_mtime > unused_since:
                continue
            _burns, _, path = os.fsdecode(note.read_bytes().partition(b"\n")[0]).partition(" ")
            if note.name != but and path and not Path(path).exists():
                note.unlink()
