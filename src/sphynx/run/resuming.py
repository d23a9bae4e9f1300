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
        "the data are not those that the run was started with: images, labels or names of classes differ",
        where=str(file),
        remedy="Give the data as they were, or another `out` folder.",
    )
