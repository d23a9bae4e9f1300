"""Reports of long work to its caller: one kind of callback for trainings, bundles and report pages alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

Value = float | int | str | None


@dataclass(frozen=True)
class Update:
    """A report to a progress listener: an epoch's numbers, steps that are done, or a note.

    >>> update = sphynx.Update("train", done=3, total=23, values={"loss": 0.5})
    >>> f"{update.done} of {update.total}: {update.values['loss']}"
    '3 of 23: 0.5'
    """

    stage: str
    done: int = 0  # steps, of `total`
    total: int = 0
    values: Mapping[str, Value] = field(default_factory=dict)
    note: str = ""


Listener = Callable[[Update], None]


def ignore(_update: Update) -> None:
    """Listen to nothing."""
