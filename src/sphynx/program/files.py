"""A compiled folder: program.json, and the weights, or what they follow from (compiler/rounding.py). No torch.

program.json is public, and all that a client needs. It holds the program's JSON and its content hash; a file whose
content does not match its hash is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.ir import Program
from sphynx.program.parse import program_from_json
from sphynx.program.weights import WEIGHTS, load_weights, save_corrections, save_weights
from sphynx.space.artifact import PROGRAM, refuse_uncompiled
from sphynx.space.json_file import read_json

HASH = "content_hash"
HASH_DIGITS = 64
SHOWN_DIGITS = 16  # to people, and the least that they can name a program by
_DIGITS = frozenset("0123456789abcdef")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


def short_hash(content_hash: str) -> str:
    """Shorten a hash for people to read."""
    return content_hash[:SHOWN_DIGITS]


def is_hash(text: str) -> bool:
    """Return whether a text is a hash or its first digits, as `parse_wanted` gives them, and not a name."""
    return bool(text) and not set(text) - _DIGITS


def parse_wanted(text: str) -> str:
    """A program's hash, its first digits or its name, from people; "" is the only program."""
    digits = text.lower()
    if not is_hash(digits):
        if text and not _NAME.fullmatch(text):
            raise InputError(
                f"{text!r} is neither a program's hash nor a name",
                where="program",
                remedy="Give a name that the server lists, or a hash as sphynx compile prints it.",
            )
        return text
    if not SHOWN_DIGITS <= len(digits) <= HASH_DIGITS:
        raise InputError(
            f"{text!r} is not a program's hash",
            where="program",
            remedy=f"Give at least its first {SHOWN_DIGITS} hex digits, as sphynx compile prints them.",
        )
    return digits


class Parts(Protocol):
    """A program compiled just now, with its parts; of a loaded one the corrections are not known any more."""

    @property
    def program(self) -> Program: ...
    @property
    def weights(self) -> Mapping[str, Array]: ...
    @property
    def corrections(self) -> Mapping[str, Array] | None: ...


def save_compiled(folder: Path, compiled: Parts, *, derivable: bool = False) -> None:
    """The secret first: a folder that has a program also has its weights, or from what to derive them."""
    folder.mkdir(parents=True, exist_ok=True)
    if derivable:
        if compiled.corrections is None:
            raise InputError("its corrections are missing", where=str(folder), remedy="Compile the model again.")
        save_corrections(folder, compiled.program, compiled.corrections)
        (folder / WEIGHTS).unlink(missing_ok=True)  # an older program's would be taken for this one's
    else:
        save_weights(folder, compiled.program, compiled.weights)
    save_program(folder, compiled.program)


def load_compiled(folder: Path) -> tuple[Program, dict[str, Array]]:
    """Read a program and its weights."""
    program = load_program(folder)
    return program, load_weights(folder, program)


def save_program(folder: Path, program: Program) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({HASH: program.content_hash, **program.to_json()}, indent=1)
        temporary = folder / (PROGRAM + ".new")
        temporary.write_text(text + "\n")
        temporary.replace(folder / PROGRAM)
    except OSError as error:
        raise InputError(
            f"it cannot be written ({error.strerror})", where=str(folder), remedy="Choose another folder."
        ) from error


def load_program(path: Path) -> Program:
    """From a compiled folder or from the file itself."""
    refuse_uncompiled(path)
    file = path / PROGRAM if path.is_dir() else path
    data = read_json(file)
    stated = data.pop(HASH, None) if isinstance(data, dict) else None
    program = program_from_json(data, where=str(file))
    if stated != program.content_hash:
        raise InputError(
            "its content does not match its hash: it was changed or damaged",
            where=str(file),
            remedy="Take the file from the server again, or compile the network again.",
        )
    return program
