"""Files and folders that verbs write when their work is done. Whether they can be is found out before it begins."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from sphynx.errors import InputError


def _writable(path: Path, flag: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        possible = not path.is_dir() and os.access(path if path.exists() else path.parent, os.W_OK)
    except OSError:
        possible = False
    if not possible:
        raise InputError("it cannot be written", where=str(path), remedy=f"Name another file: {flag} FILE.")
    return path


def out_file(path: Path | None) -> Path | None:
    """The callback of an --out that is a file."""
    return None if path is None else _writable(path, "-o")


def array_file(path: Path | None) -> Path | None:
    """The callback of an --arrays."""
    if path is not None and path.suffix != ".npz":
        raise InputError("its name does not end in .npz", where=str(path), remedy="Name a file such as answers.npz.")
    return None if path is None else _writable(path, "--arrays")


def record_file(path: Path | None) -> Path | None:
    """The callback of a --record."""
    if path is not None and path.suffix not in (".html", ".htm"):
        raise InputError("its name does not end in .html", where=str(path), remedy="Name a file such as record.html.")
    return None if path is None else _writable(path, "--record")


def out_folder(path: Path) -> Path:
    """The callback of an --out that is a folder. It is not made yet: what goes wrong before would leave it empty."""
    nearest = next(place for place in (path, *path.absolute().parents) if place.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK):
        raise InputError("the folder cannot be created", where=str(path), remedy="Name another: -o FOLDER.")
    return path


def picture_folder(path: Path | None) -> Path | None:
    """The callback of an --svg."""
    if path is not None:
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError:
            raise InputError("it is not a folder", where=str(path), remedy="Name another: --svg FOLDER.") from None
    return path


Out = Annotated[Path | None, typer.Option("--out", "-o", help="A file for all numbers, as JSON.", callback=out_file)]


def figure_file(*suffixes: str) -> Callable[[Path | None], Path | None]:
    """The callback of a --figure whose format is told by the file's name."""

    def checked(path: Path | None) -> Path | None:
        if path is None:
            return None
        if path.suffix.lower() not in suffixes:
            raise InputError(
                f"its name does not end in any of {', '.join(suffixes)}",
                where=f"--figure {path}",
                remedy=f"Choose the format by the ending: --figure {path.stem or 'figure'}{suffixes[0]}.",
            )
        return _writable(path, "--figure")

    return checked
