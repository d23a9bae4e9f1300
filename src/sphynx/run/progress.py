"""What a user sees of long work, on stderr: a bar with the time left, and one aligned row per epoch.

    with Progress("train", total=recipe.epochs * steps, columns=("epoch", "loss", "accuracy")) as progress:
        progress.advance()
        progress.row(epoch=1, loss=2.31, accuracy=0.112)

The bar needs a terminal; the rows are plain text and go to a log file as they are.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

_WIDTH = 9


class Progress:
    """`done` is what an earlier, resumed run already did of `total`: it counts for the bar, not for the speed."""

    def __init__(
        self, title: str, *, total: int, columns: Sequence[str] = (), done: int = 0, quiet: bool = False,
        stream: TextIO | None = None,
    ) -> None:  # fmt: skip
        self.columns = tuple(columns)
        self.quiet = quiet
        self._total, self._done, self._first = total, done, done
        self._started = time.monotonic()
        self._console = Console(file=stream or sys.stderr, quiet=quiet, highlight=False)
        self._bar = Bar(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn(),
            TextColumn("left"), TimeRemainingColumn(), console=self._console, transient=True,
            disable=quiet or not self._console.is_terminal,
        )  # fmt: skip
        self._task = self._bar.add_task(title, total=total, completed=done)
        self._header_printed = False

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def advance(self, steps: int = 1) -> None:
        self._done += steps
        self._bar.advance(self._task, steps)

    def seconds_left(self) -> float | None:
        fresh = self._done - self._first
        if fresh <= 0:
            return None
        return (self._total - self._done) * (time.monotonic() - self._started) / fresh

    def row(self, **values: float | int | str | None) -> None:
        """One line under the header. Floats below 10 get four digits; a column without a value stays empty."""
        if not self._header_printed:
            self._header_printed = True
            self._print([*self.columns, "left"])
        left = self.seconds_left()
        self._print([*(_cell(values.get(name)) for name in self.columns), "" if left is None else duration(left)])

    def note(self, text: str) -> None:
        self._console.print(text, markup=False)

    def _print(self, cells: Sequence[str]) -> None:
        names = [*self.columns, "left"]
        line = "  ".join(cell.rjust(max(_WIDTH, len(name))) for cell, name in zip(cells, names, strict=True))
        self._console.print(line, markup=False, soft_wrap=True)


def duration(seconds: float) -> str:
    """1h 02m, 3m 20s, 4.2s"""
    if seconds < 60:
        return f"{seconds:.1f}s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes}m {rest:02d}s"
    return f"{minutes // 60}h {minutes % 60:02d}m"


def _cell(value: float | int | str | None) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"
    return str(value)
