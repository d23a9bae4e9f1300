"""A compiled folder: program.json, and the weights, or what they follow from (compiler/rounding.py). No torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.files import save_program
from sphynx.program.ir import Program
from sphynx.program.weights import WEIGHTS, save_corrections, save_weights


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
