"""How long tasks took in all calls together, from which what is left is estimated: it takes what its like took.

OUT/logs/minutes.json   {"finished": {name: minutes}, "begun": {name: minutes}}, beside the tasks' logs
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Collection, Mapping
from pathlib import Path

FILE = "minutes.json"
LEAST_PART = 4  # of what is expected: so much one takes at least that has taken as long already


class TaskMinutes:
    """`needed`: the tasks that others wait for."""

    def __init__(self, file: Path, needed: Collection[str] = ()) -> None:
        self._file, self._needed = file, needed
        kept = json.loads(file.read_text()) if file.is_file() else {}
        self.finished: dict[str, float] = kept.get("finished", {})
        self.begun: dict[str, float] = kept.get("begun", {})

    def add(self, name: str, minutes: float, *, finished: bool) -> None:
        """Add what this call took of a task to what earlier ones did, and write it down."""
        total = round(self.begun.pop(name, 0.0) + minutes, 2)
        (self.finished if finished else self.begun)[name] = total
        part = self._file.with_name(self._file.name + ".new")
        part.write_text(json.dumps({"finished": self.finished, "begun": self.begun}, indent=1) + "\n")
        part.replace(self._file)

    def left(self, names: Collection[str], jobs: int, running: Mapping[str, float]) -> tuple[float, int]:
        """Minutes that these still take, `jobs` at a time, and how many more tasks there are of which nothing that is
        finished says it. `running`: minutes of this call so far."""
        expected = {name: minutes for name in names if (minutes := self._expected(name)) is not None}
        spent = {name: self.begun.get(name, 0.0) + running.get(name, 0.0) for name in expected}
        each = [max(minutes / LEAST_PART, minutes - spent[name]) for name, minutes in expected.items()]
        return max([sum(each) / jobs, *each], default=0.0), len(names) - len(expected)

    def _expected(self, name: str) -> float | None:
        """Take the mean of its kind, else of the tasks that nothing waits for."""
        like = [minutes for other, minutes in self.finished.items() if _kind(other) == _kind(name)]
        if not like and name not in self._needed:
            like = [minutes for other, minutes in self.finished.items() if other not in self._needed]
        return statistics.fmean(like) if like else None


def _kind(name: str) -> str:
    """Tasks that differ in numbers alone are alike: seeds, folds, budgets."""
    return re.sub(r"\d+", "#", name)
