"""`sphynx watch`: a training, a search or a design as it runs, in the terminal and as a page."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli.output_files import out_file
from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.report.live.runs import Live


def watch(
    run: Annotated[
        Path, typer.Argument(help="The --out folder of `train`, `search`, `place`, `allocate` or `design`.")
    ],
    page: Annotated[
        Path | None,
        typer.Option("--page", help="Also write a page to this .html file; the browser reloads it.", callback=out_file),
    ] = None,
    every: Annotated[float, typer.Option("--every", min=0.2, help="Seconds between updates.")] = 2.0,
    wait: Annotated[
        float, typer.Option("--wait", min=0, help="Seconds to wait for a run that is still starting.")
    ] = 60.0,
    once: Annotated[bool, typer.Option("--once", help="Show the run once and exit.")] = False,
    in_browser: Annotated[bool, typer.Option("--open", help="Open the page in the browser; needs --page.")] = False,
) -> None:
    """Show a run as it progresses: curves, time left, cells of a search as they change. Ends with the run or Ctrl-C.

    It only reads the folder: start and stop it at any time, several times, from another terminal.

    Examples:

      sphynx watch runs/digits

      sphynx watch runs/cells --page watch.html --open
    """
    from rich.console import Console
    from rich.live import Live as Screen

    from sphynx.report.live.terminal import live_view

    if in_browser and page is None:
        raise InputError("there is no page to open", where="--open", remedy="Give --page watch.html too.")
    found = _first(run, 0.0 if once else wait)
    _write(found, page, every)
    if in_browser and page is not None:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())
    console = Console()
    if once:
        console.print(live_view(found))
        return
    try:
        with Screen(live_view(found), console=console, auto_refresh=False) as screen:
            while not found.finished:
                time.sleep(every)
                found = _first(run, 0.0)
                screen.update(live_view(found), refresh=True)
                _write(found, page, every)
    except KeyboardInterrupt:
        typer.echo("The run continues; watch it again with the same command.", err=True)


def _first(run: Path, wait_s: float) -> Live:
    """Read what is there, or will be in a moment."""
    from sphynx.report.live.runs import read_live

    deadline = time.monotonic() + wait_s
    while True:
        try:
            return read_live(run)
        except InputError as error:
            if time.monotonic() >= deadline:
                remedy = f"{error.remedy} --wait S waits for one that is still starting."
                raise InputError(error.what, where=error.where, remedy=remedy) from None
            time.sleep(min(1.0, wait_s))


def _write(found: Live, page: Path | None, every_s: float) -> None:
    if page is not None:
        from sphynx.report.live.page import write_live_page

        write_live_page(found, page, every_s)
