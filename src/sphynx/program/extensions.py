"""How OTs are made of few: by SoftSpoken, about four bytes each, or silently, 0.3 bytes each after a set-up of half a
megabyte a direction (docs/security/silent-ot.md). Each direction of a connection is extended by either, for each
preparation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from sphynx.errors import InputError

Extension = Literal["softspoken", "silent"]
ExtensionChoice = Literal["auto", "softspoken", "silent"]  # auto: the faster one over the link
EXTENSION_CHOICES: tuple[ExtensionChoice, ...] = get_args(ExtensionChoice)


@dataclass(frozen=True)
class Extensions:
    """The extension in `down`, where the client receives, and in `up`, where the server does."""

    down: Extension = "softspoken"
    up: Extension = "softspoken"

    @property
    def silent(self) -> frozenset[str]:
        """The directions that are extended silently."""
        return frozenset(name for name, kind in vars(self).items() if kind == "silent")

    def __str__(self) -> str:
        return self.down if self.down == self.up else f"silent {next(iter(self.silent))}"


SOFTSPOKEN, SILENT = Extensions(), Extensions("silent", "silent")


def every_extension() -> Iterator[Extensions]:
    """List what a client can choose."""
    kinds: tuple[Extension, ...] = get_args(Extension)
    return (Extensions(down, up) for down in kinds for up in kinds)


def check_extension(name: str, *, where: str) -> ExtensionChoice:
    """Refuse an unknown name; `where` is the argument that it was given as."""
    for known in EXTENSION_CHOICES:
        if known == name:
            return known
    raise InputError(f"{name!r} is not an OT extension", where=where, remedy="Choose auto, softspoken or silent.")


def combine(ours: ExtensionChoice, theirs: ExtensionChoice) -> ExtensionChoice | None:
    """Combine two settings: who says auto leaves it to the other. None where they contradict each other."""
    if ours == "auto":
        return theirs
    return ours if theirs in ("auto", ours) else None


def allows(choice: ExtensionChoice, extensions: Extensions) -> bool:
    """Return whether a setting allows these."""
    return choice == "auto" or extensions == Extensions(choice, choice)
