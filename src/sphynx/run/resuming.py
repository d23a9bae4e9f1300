"""Whether a folder that holds a run already is continued or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from sphynx.errors import InputError

Resume = Literal["auto", "never"]


def refuse_old_run(out: Path, resume: Resume) -> None:
    if resume == "never" and any(out.glob("**/checkpoint.pt")):
        raise InputError(
            "the folder already contains a run", where=str(out), remedy="Give --resume auto, or another --out."
        )
