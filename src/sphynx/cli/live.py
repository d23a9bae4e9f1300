"""A training, a search or a design as it runs, in the terminal and as a page: `sphynx report RUN --live`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.report.live.runs import Live

WAIT_S = 120.0  # for a run that is still starting


def follow(run: Path, page: Path | None, every_s: float) -> None:
    """Show the run until it ends, or once where `every_s` is 0. It only reads the folder."""
    from rich.console import Console
    from rich.live import Live as Screen

    from sphynx.report.live.terminal import live_view

    found = _first(run, WAIT_S if every_s else 0.0)
    _write(found, page, every_s)
    console = Console()
    if not every_s:
        console.print(live_view(found))
        return
    try:
        with Screen(live_view(found), console=console, auto_refresh=False) as screen:
            while not found.finished:
                time.sleep(every_s)
                found = _first(run, 0.0)
                screen.update(live_view(found), refresh=True)
                _write(found, page, every_s)
    except KeyboardInterrupt:
        typer.echo("The run continues; watch it again with the same command.", err=True)


def _first(run: Path, wait_s: float) -> Live:
    """Read what is there, or will be in a moment."""
    from sphynx.report.live.runs import read_live

    deadline, told = time.monotonic() + wait_s, False
    while True:
        try:
            return read_live(run)
        except InputError:
            if time.monotonic() >= deadline:
                raise
            if not told:
                typer.echo(f"no run in {run} yet; waiting {wait_s:.0f} s for one to start (Ctrl-C ends)", err=True)
                told = True
            time.sleep(min(1.0, wait_s))


def _write(found: Live, page: Path | None, every_s: float) -> None:
    if page is not None:
        from sphynx.report.live.page import write_live_page

        write_live_page(found, page, every_s)
