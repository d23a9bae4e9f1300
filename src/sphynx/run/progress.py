"""Progress of long work: on stderr a bar with the time left and one aligned row per epoch, and updates to a listener.

    with Progress("train", total=recipe.epochs * steps, columns=("epoch", "loss", "accuracy"), voice=voice) as progress:
        progress.advance()
        progress.row(epoch=1, loss=2.31, accuracy=0.112)

The bar needs a terminal; the rows are plain text and go to a log file as they are. A `Voice` says how much of it is
wanted, and who hears of it besides.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, TextIO

from rich.console import Console
from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from sphynx.run.update import Listener, Update, Value, ignore
from sphynx.units import duration

_WIDTH = 9
_SPOKEN_EVERY_S = 5.0  # by a verbose voice


@dataclass(frozen=True)
class Voice:
    """How much long work says on stderr, and who hears of it besides. Verbose: where it is, between epochs too."""

    level: Literal["quiet", "normal", "verbose"] = "normal"
    listener: Listener = ignore

    def say(self, text: str, *, stage: str = "") -> None:
        """A line between stages."""
        self.listener(Update(stage, note=text))
        self.write(text)

    def report(self, update: Update) -> None:
        """Say the note of an update; as a listener of other work."""
        self.say(update.note, stage=update.stage)

    def write(self, text: str) -> None:
        """On stderr alone."""
        if self.level != "quiet":
            print(text, file=sys.stderr, flush=True)

    def __reduce__(self) -> tuple[Callable[[], Voice], tuple[()]]:
        """A voice that travels to another process is that process's own: who listens here cannot hear it there."""
        return _own_voice, ()


NORMAL, QUIET = Voice(), Voice("quiet")
_own = [QUIET]


def speak_with(voice: Voice) -> None:
    """Set this process's voice to the one that arrived with the work of another process."""
    _own[0] = voice


def _own_voice() -> Voice:
    return _own[0]


class Progress:
    """`done` is what an earlier, resumed run already did of `total`: it counts for the bar, not for the speed."""

    def __init__(
        self,
        title: str,
        *,
        total: int,
        columns: Sequence[str] = (),
        done: int = 0,
        voice: Voice = NORMAL,
        stream: TextIO | None = None,
    ) -> None:
        self.columns = tuple(columns)
        self._title, self._voice = title, voice
        self._total, self._done, self._first = total, done, done
        self._started = self._spoken = time.monotonic()
        self._console = Console(file=stream or sys.stderr, quiet=voice.level == "quiet", highlight=False)
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=voice.level == "quiet" or not self._console.is_terminal,
        )
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
        if self._voice.level == "verbose" and time.monotonic() - self._spoken >= _SPOKEN_EVERY_S:
            self._spoken = time.monotonic()
            left = self.seconds_left()
            self._say(f"{self._title}: step {self._done:,} of {self._total:,}, {duration(left or 0.0)} left")

    def seconds_left(self) -> float | None:
        fresh = self._done - self._first
        if fresh <= 0:
            return None
        return (self._total - self._done) * (time.monotonic() - self._started) / fresh

    def row(self, **values: Value) -> None:
        """One line under the header. Floats below 10 get four digits; a column without a value stays empty."""
        self._voice.listener(Update(self._title, self._done, self._total, values))
        if not self._header_printed:
            self._header_printed = True
            self._print([*self.columns, "left"])
        left = self.seconds_left()
        self._print([*(_cell(values.get(name)) for name in self.columns), "" if left is None else duration(left)])

    def note(self, text: str) -> None:
        self._voice.listener(Update(self._title, self._done, self._total, note=text))
        self._say(text)

    def _say(self, text: str) -> None:
        self._console.print(text, markup=False)

    def _print(self, cells: Sequence[str]) -> None:
        names = [*self.columns, "left"]
        line = "  ".join(cell.rjust(max(_WIDTH, len(name))) for cell, name in zip(cells, names, strict=True))
        self._console.print(line, markup=False, soft_wrap=True)


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"
    return str(value)
