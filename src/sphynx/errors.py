"""What failed, where, and the remedy. Every failure a user can act on is a SphynxError."""

from __future__ import annotations

from collections.abc import Sequence


class SphynxError(Exception):
    """Something failed while running. `remedy` says what the user can do about it."""

    exit_code = 1

    def __init__(self, what: str, *, remedy: str, where: str = "") -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        super().__init__(f"{where}: {what}" if where else what)


class InputError(SphynxError):
    """What the user gave cannot be used: a file, a flag, a budget."""

    exit_code = 2


class MissingPartError(SphynxError):
    """An optional part of the installation (torch, the compiled core) is needed and absent."""


def join_faults(faults: Sequence[str]) -> str:
    """One message for all faults of an input, so that they can be mended in one go."""
    if len(faults) == 1:
        return faults[0]
    return f"{len(faults)} faults:\n" + "\n".join(f"  - {fault}" for fault in faults)
