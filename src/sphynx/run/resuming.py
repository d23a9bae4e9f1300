"""Decide whether a folder that holds a run already is continued or refused, and word the refusal."""

from __future__ import annotations

from pathlib import Path

from sphynx.errors import InputError


def refuse_old_run(out: Path, *, resume: bool) -> None:
    if not resume and any(out.glob("**/checkpoint.pt")):
        raise holds_a_run(out)


def holds_a_run(out: Path) -> InputError:
    return InputError(
        "the folder already contains a run",
        where=str(out),
        remedy="Give `resume=True`, or another `out`.",
    )


def begun_with_other_data(file: Path) -> InputError:
    return InputError(
        "the data differ from those that the run was started with, in images, labels or class names",
        where=str(file),
        remedy="Give the same data, or another `out` folder.",
    )
