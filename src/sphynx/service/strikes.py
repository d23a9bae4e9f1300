"""Strikes: which clients failed a check. Three close a client out.

One JSON object a line, `{"client": name, "at": seconds since 1970, "why": text}`, appended under a lock and on the disk
when `add` returns: whoever calls it does so before the client can see anything. A client is known by the name in its
certificate, so new keys do not help it. Servers that are given one file share it. The file outlives bundles and
servers; who deletes a client's lines takes it back.

Verdicts that could tell a client something about the weights are found inside `judging`, one at a time in all processes
that share the file. A connection knows how many strikes its client had when it began; if there are more, a verdict is
void, whatever it would be. However many connections a client has, it sees three failures and not one more.

A line that a crash cut short is none: nobody has seen anything then. A list that cannot be read closes out everybody.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path

from sphynx.errors import DiskError, InputError, RefusedError

FILE = "strikes.jsonl"
MOST = 3


class Strikes:
    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Create the file unless it is there; once it is, it has to stay."""
        self._path, self._clock = path, clock
        self._adding = threading.Lock()  # taken after the file's own lock, never before it
        self._unwritten: list[str] = []  # lines that the disk did not take
        self._of_thread = threading.local()
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self.count("")
        except (OSError, RefusedError) as error:
            why = error.strerror if isinstance(error, OSError) else error.what
            raise InputError(
                f"the list of strikes cannot be used ({why})",
                where=str(path),
                remedy="Give a file that this server may write: `strikes=FILE`.",
            ) from None

    def add(self, client: str, why: str) -> int:
        """Strike a client; return how many strikes it has. One that the disk does not take counts as long as this
        process lives, and is written with the next one."""
        line = json.dumps({"client": client, "at": self._clock(), "why": why})
        with self._adding:
            self._unwritten.append(line)
        try:
            with self._locked() as file, self._adding:
                self._write(file)
        except OSError as error:
            raise DiskError(
                f"it cannot be written ({error.strerror})",
                where=str(self._path),
                remedy="Check permissions and free disk space.",
            ) from None
        return self.count(client)

    def count(self, client: str) -> int:
        with self._adding:
            try:
                text = self._path.read_text(errors="replace")
            except OSError:
                raise _unreadable() from None
            lines = [*text.split("\n")[:-1], *self._unwritten]
        return sum(_client_in(line) == client for line in lines)

    def check(self, client: str, known: int | None = None) -> None:
        """Refuse a client that is closed out, and one with more strikes than its connection has `known`."""
        count = self.count(client)
        if count >= MOST:
            raise RefusedError(
                f"this client failed {MOST} checks and is closed out",
                where="client",
                remedy="Ask whoever runs the server.",
            )
        if known is not None and count > known:
            raise RefusedError(
                "another connection of this client failed a check",
                where="client",
                remedy="Connect again, and prepare new bundles.",
            )

    @contextmanager
    def judging(self, client: str, known: int) -> Iterator[None]:
        """Find a verdict on a client while nobody else does, unless it is void; inside, `add` is allowed."""
        with ExitStack() as locked:
            try:
                file = locked.enter_context(self._locked())
                with self._adding:
                    if self._unwritten:  # a strike that other processes do not know of yet, or a restart would forget
                        self._write(file)
            except OSError:
                raise _unreadable() from None
            self.check(client, known)
            yield

    @contextmanager
    def _locked(self) -> Iterator[FileIO]:
        """Lock the file and give it; a thread that has locked it already keeps it."""
        held: FileIO | None = getattr(self._of_thread, "file", None)
        if held is not None:
            yield held
            return
        with FileIO(os.open(self._path, os.O_RDWR | os.O_APPEND), "r+") as file:  # not created again
            fcntl.flock(file, fcntl.LOCK_EX)
            self._of_thread.file = file
            try:
                yield file
            finally:
                self._of_thread.file = None

    def _write(self, file: FileIO) -> None:
        size_bytes = file.seek(0, os.SEEK_END)
        whole = size_bytes == 0 or os.pread(file.fileno(), 1, size_bytes - 1) == b"\n"
        added = ("" if whole else "\n") + "".join(line + "\n" for line in self._unwritten)
        if file.write(added.encode()) != len(added):
            raise OSError(0, "it was cut short")
        os.fsync(file.fileno())
        self._unwritten.clear()


def _unreadable() -> RefusedError:
    return RefusedError(
        "the server's list of strikes cannot be read or written",
        where="server",
        remedy="Ask whoever runs the server: its log says more.",
    )


def _client_in(line: str) -> str | None:
    try:
        found = json.loads(line)["client"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
