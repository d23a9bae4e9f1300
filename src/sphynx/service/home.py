"""Tell whether a file is still the one that was made here, or a copy that somebody restored.

A copy has another inode or another time of birth. A file system that was set back with the whole machine keeps both,
but the machine has been started anew since. The device is left out: its number may change with every start.

Not to be seen here: contents that were put back into the same file while the machine ran (`waterline.py`).
"""

from __future__ import annotations

import ctypes
import os
import struct
from pathlib import Path

from sphynx.system import boot_id

_AT_FDCWD, _STATX_BTIME = -100, 0x800
_STATX_BYTES, _MASK_AT, _BIRTH_AT = 256, 0, 80


def home_of(path: Path) -> str:
    """The home of a file that exists: "inode birth boot"."""
    return f"{path.stat().st_ino} {_birth(path)} {boot_id()}"


def why_moved(before: str, now: str) -> str | None:
    """Say what speaks for a copy, if anything does."""
    if is_other_file(before, now):
        return "the ledger is not the file that was made here: the folder was copied or restored"
    if before != now:
        return "the machine was restarted, perhaps from an older state of its disk"
    return None


def is_other_file(before: str, now: str) -> bool:
    """Return whether the inode or the birth is another; also before there was a home."""
    return before.split()[:2] != now.split()[:2]


def _birth(path: Path) -> str:
    """Seconds since 1970, or "unknown": not every file system keeps it."""
    kept: float | None = getattr(path.stat(), "st_birthtime", None)  # on Linux Python asks for less than there is
    if kept is not None:
        return f"{kept:.6f}"
    call = getattr(ctypes.CDLL(None), "statx", None)
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    if call is None or call(_AT_FDCWD, os.fsencode(path), 0, _STATX_BTIME, answer) != 0:
        return "unknown"
    (mask,) = struct.unpack_from("=I", answer, _MASK_AT)
    seconds, nanoseconds = struct.unpack_from("=qI", answer, _BIRTH_AT)
    return f"{seconds}.{nanoseconds:09d}" if mask & _STATX_BTIME else "unknown"
