"""Limits on what compressed data files may become (no torch)."""

from __future__ import annotations

from pathlib import Path

from sphynx.errors import InputError

MOST_TIMES = 100  # its size; pictures and digits shrink to a tenth at best, zeros to a thousandth
_ALWAYS_BYTES = 1 << 20


def most_bytes(path: Path) -> int:
    """The most that a file may hold, by its size on the disk."""
    return _ALWAYS_BYTES + MOST_TIMES * path.stat().st_size


def require_modest(unpacked_bytes: int, path: Path) -> None:
    """Refuse a file that would fill the memory, before it is unpacked."""
    if unpacked_bytes > most_bytes(path):
        raise InputError(
            f"it would unpack to more than {MOST_TIMES} times its size",
            where=str(path),
            remedy="Fetch it again from where it was published; a copy that another program unpacked can be read too.",
        )
