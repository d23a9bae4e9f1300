"""Strikes a process at one of its moments: right before or after a message, or around a change of its ledger.

Moments are numbered per phase, two for each event: 2n before it and 2n + 1 after it. The phase is that of the
connection that the process opened last: a chaos client prepares on its first one and infers on its second. Before a
change of the ledger means: all its statements made, nothing committed.

What was struck, and how many events there were, is written to a `Board`: memory that parent and child share.
"""

from __future__ import annotations

import mmap
import os
import random
import resource
import signal
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sphynx.protocol.channel import Channel
from sphynx.service.ledger_file import LedgerFile
from sphynx.service.store import BUNDLES, LEDGER, Store

PHASES = ("start", "offline", "online")
CLOCK_JUMP_S = 100 * 86_400.0  # beyond the life of a bundle, and of a spent row in the ledger
PAGE_BYTES = 4096


class Board:
    """How many events each phase had, and whether the blow fell."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 4 * 16)

    def add(self, slot: int) -> int:
        """The number that the slot had before."""
        (count,) = struct.unpack_from("I", self._memory, 4 * slot)
        struct.pack_into("I", self._memory, 4 * slot, count + 1)
        return int(count)

    def count(self, slot: int) -> int:
        return int(struct.unpack_from("I", self._memory, 4 * slot)[0])

    @property
    def is_struck(self) -> bool:
        return self.count(15) > 0

    def strike(self) -> None:
        self.add(15)


@dataclass(frozen=True)
class Blow:
    """The fault that strikes the process, and when."""

    fault: str
    phase: str
    moment: int
    seed: int = 0


class Moments:
    def __init__(self, board: Board, blow: Blow | None, folder: Path) -> None:
        """`folder` holds the process's bundles."""
        self._board, self._blow, self._folder = board, blow, folder
        self._phase = 0
        self._counting = threading.Lock()

    def install(self) -> None:
        """For the rest of this process."""
        opened, moments = Channel.__init__, self

        def counted(self: Channel, stream: Any, peer: str = "peer") -> None:
            opened(self, stream, peer)
            moments._phase = min(moments._phase + 1, len(PHASES))

        Channel.__init__ = counted
        for name in ("_send", "_receive"):
            setattr(Channel, name, self._around(getattr(Channel, name)))
        change = LedgerFile.change

        @contextmanager
        def changed(self: LedgerFile) -> Iterator[Any]:
            with change(self) as base:
                yield base
                event = moments._begin()
            moments._end(event)

        LedgerFile.change = changed

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def struck(*arguments: Any) -> Any:
            event = self._begin()
            found = call(*arguments)
            self._end(event)
            return found

        return struck

    def _begin(self) -> tuple[int, int]:
        with self._counting:
            phase = self._phase
            event = self._board.add(phase)
        self._fall(phase, 2 * event)
        return phase, event

    def _end(self, event: tuple[int, int]) -> None:
        self._fall(event[0], 2 * event[1] + 1)

    def _fall(self, phase: int, moment: int) -> None:
        blow = self._blow
        if blow is not None and phase < len(PHASES) and (PHASES[phase], moment) == (blow.phase, blow.moment):
            self._board.strike()
            _FAULTS[blow.fault](self._folder, random.Random(blow.seed))


def _kill(_folder: Path, _random: random.Random) -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()  # the signal may first reach another thread: this one does not go on


def _pause(_folder: Path, _random: random.Random) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _fill_disk(_folder: Path, _random: random.Random) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


def _take_memory(_folder: Path, _random: random.Random) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(), resource.getrlimit(resource.RLIMIT_AS)[1]))


def _forbid_writing(folder: Path, _random: random.Random) -> None:
    set_writable(folder, False)


def _damage(folder: Path, dice: random.Random) -> None:
    """One page of the ledger, or of its log, is overwritten, as by a broken disk; or its end is cut off."""
    path = folder / dice.choice((LEDGER, f"{LEDGER}-wal"))
    size = path.stat().st_size if path.exists() else 0
    if not size:
        return
    page = dice.randrange((size + PAGE_BYTES - 1) // PAGE_BYTES) * PAGE_BYTES
    if dice.random() < 0.25 and page:
        os.truncate(path, page)
        return
    with path.open("r+b") as file:
        file.seek(page)
        file.write(dice.randbytes(min(PAGE_BYTES, size - page)))


def _jump(by_s: float) -> Callable[[Path, random.Random], None]:
    def jump(_folder: Path, _random: random.Random) -> None:
        now = time.time

        def later() -> float:
            return now() + by_s

        time.time = later
        _clock[0] = later

    return jump


_clock: list[Callable[[], float]] = [time.time]
_FAULTS: dict[str, Callable[[Path, random.Random], None]] = {
    "kill -9": _kill,
    "pause": _pause,
    "disk full": _fill_disk,
    "no memory": _take_memory,
    "read-only": _forbid_writing,
    "damaged ledger": _damage,
    "clock +100 d": _jump(CLOCK_JUMP_S),
    "clock -100 d": _jump(-CLOCK_JUMP_S),
}
PROCESS_FAULTS = tuple(_FAULTS)


def use_jumping_clock() -> None:
    """The store's clock is a default argument, which was bound when its module was imported."""
    defaults = Store.__init__.__kwdefaults__
    assert defaults is not None
    defaults["clock"] = lambda: _clock[0]()


def set_writable(folder: Path, is_writable: bool) -> None:
    """Allow or refuse new files. Open ones stay writable, as they would not on a disk that is remounted read-only."""
    for path in (folder, folder / BUNDLES, *folder.glob(f"{LEDGER}*")):
        if path.exists():
            path.chmod((0o700 if path.is_dir() else 0o600) if is_writable else (0o500 if path.is_dir() else 0o400))
