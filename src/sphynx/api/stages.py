"""The parameters that the calls that search and train have in common.

Each keeps its work in a folder and continues what an interrupted one left there with `resume=True`. `progress` hears of
every epoch (`Update`); without it nothing is said. With `ray`, "local" or a cluster's address, what is independent
(seeds, cells of a ranking, placements that are trained by themselves) runs there, with the same results.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sphynx.data.images import Data
from sphynx.data.open import open_data
from sphynx.run.progress import Update, Voice

Hears = Callable[[Update], None] | Voice | None


def voice_of(progress: Hears) -> Voice:
    if isinstance(progress, Voice):
        return progress
    return Voice("quiet") if progress is None else Voice("quiet", progress)


def opened(data: Data | str | Path) -> Data:
    return open_data(str(data)) if isinstance(data, str | Path) else data
