"""Strikes: which clients failed a check. Three close a client out.

One JSON object a line, `{"client": name, "at": seconds since 1970, "why": text}`, appended under a lock and on the disk
when `add` returns: whoever calls it does so before the client can see anything. A client is known by the name in its
certificate, so new keys do not help it. Servers that are given one file share it. The file outlives bundles and
servers; who deletes a client's lines takes it back.

Verdicts that could tell a client something about the weights are found inside `judging`, one at a time in all processes
that share the file. A connection knows how many strikes its client had when it began; if there are more, a verdict is
void, whatever it would be. However many connections a client has, it sees three failures and not one more. Room for a
line is taken in the file before a verdict is found, and given back: on a full disk, where processes could not tell one
another of a strike, nobody is judged. The room is line ends, which a crash may leave there.

A line that a crash cut short is none: nobody has seen anything then. A list that cannot be read closes out everybody.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path

from sphynx import system
from sphynx.errors import DiskError, InputError, RefusedError

FILE = "strikes.jsonl"
MOST = 3
ROOM_BYTES = 4096  # more than a line has


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
        """Refuse a client that is locked out, and one with more strikes than its connection has `known`."""
        count = self.count(client)
        if count >= MOST:
            raise RefusedError(
                f"this client failed {MOST} checks and is locked out",
                where="client",
                remedy="Contact the server's operator.",
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
                locked.enter_context(self._room_in(file))
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
        with FileIO(os.open(self._path, os.O_RDWR), "r+") as file:  # not created again
            system.lock(file)
            self._of_thread.file = file
            try:
                yield file
            finally:
                self._of_thread.file = None

    @contextmanager
    def _room_in(self, file: FileIO) -> Iterator[None]:
        """Keep room for a line behind the last one; a thread that has it already keeps it."""
        if getattr(self._of_thread, "has_room", False):
            yield
            return
        end = _end_of_lines(file)
        try:
            _put(file, end, b"\n" * ROOM_BYTES)
            self._of_thread.has_room = True
            yield
        finally:
            self._of_thread.has_room = False
            file.truncate(_end_of_lines(file))

    def _write(self, file: FileIO) -> None:
        end = _end_of_lines(file)
        whole = end == 0 or os.pread(file.fileno(), 1, end - 1) == b"\n"
        _put(file, end, (("" if whole else "\n") + "".join(line + "\n" for line in self._unwritten)).encode())
        os.fsync(file.fileno())
        self._unwritten.clear()


def _end_of_lines(file: FileIO) -> int:
    """Find where the next line goes: in place of line ends that stand for none."""
    size_bytes = file.seek(0, os.SEEK_END)
    tail = os.pread(file.fileno(), ROOM_BYTES + 1, max(0, size_bytes - ROOM_BYTES - 1))
    spare = len(tail) - len(tail.rstrip(b"\n"))
    return size_bytes - spare + (0 < spare < size_bytes)


def _put(file: FileIO, at: int, added: bytes) -> None:
    if os.pwrite(file.fileno(), added, at) != len(added):
        raise OSError(0, "it was cut short")


def _unreadable() -> RefusedError:
    return RefusedError(
        "the server's list of strikes cannot be read or written",
        where="server",
        remedy="Contact the server's operator: its log says more.",
    )


def _client_in(line: str) -> str | None:
    try:
        found = json.loads(line)["client"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
