"""The source that data were opened from. A run and a compiled program keep it, so that later commands find the data
again.

It says nothing of what the data are (`DataFace.identity` does): a moved folder is the same data.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sphynx.record import Record

Split = Literal["test", "train"]  # of a data set

KEY = "data_source"  # in the JSON of runs
FILE = "data.json"  # beside a compiled program


@dataclass(frozen=True)
class DataSource(Record):
    spec: str  # a name, or an absolute path
    image_size: int | None = None
    stream: bool = False
    skip_bad: bool = False  # leave out files that cannot be read
    groups: str | None = None  # the rule by which images belong together


def source_of(
    spec: str,
    *,
    image_size: int | None = None,
    stream: bool = False,
    skip_bad: bool = False,
    groups: str | None = None,
) -> DataSource:
    """A path, of data or of a table of groups, is kept as an absolute one."""
    path, table = Path(spec), Path(groups or "")
    found = str(table.resolve()) if table.is_file() else groups
    return DataSource(str(path.resolve()) if path.exists() else spec, image_size, stream, skip_bad, found)


def recorded_source(file: Path) -> DataSource | None:
    """From the JSON of a run, a model's card or a compiled program; older ones say only the name of their data."""
    try:
        found = json.loads(file.read_text())
        if KEY in found:
            return DataSource(**found[KEY])
        data = found["data"]
        return DataSource(data if isinstance(data, str) else str(data["name"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def save_source(folder: Path, source: DataSource | None) -> None:
    if source is not None:
        (folder / FILE).write_text(json.dumps({KEY: source.to_json()}, indent=2) + "\n")
