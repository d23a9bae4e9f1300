"""Show work of several stages on stderr: a bar with the time left for the one that goes on. Nothing without a terminal.

with shown_stages() as progress:
    compile_network(..., progress=progress)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sphynx.run.update import Listener, Update


@contextmanager
def shown_stages() -> Iterator[Listener]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TextColumn("left"))
    tasks: dict[str, TaskID] = {}
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:

        def show(update: Update) -> None:
            if update.stage not in tasks:
                for task in tasks.values():
                    bar.remove_task(task)
                tasks.clear()
                tasks[update.stage] = bar.add_task(update.stage, total=update.total or None)
            bar.update(tasks[update.stage], completed=update.done, total=update.total or None)

        yield show
