"""The command line of a tool or a benchmark: flags, help and exit codes as the verbs of `sphynx` have them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable

import typer

from sphynx.cli.main import call


def command_line(work: Callable[..., None]) -> typer.Typer:
    """Make a command of a function whose parameters are flags."""
    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command()(work)
    return app


def run(work: Callable[..., None]) -> None:
    """Run the command that was typed; a failure becomes one message and an exit code."""
    call(command_line(work), lambda: shlex.join([sys.executable, *sys.argv]))
