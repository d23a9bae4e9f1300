"""`sphynx bench`: how fast this machine is at what private inference needs. The group of its verbs."""

from __future__ import annotations

import typer

from sphynx.cli.bench_private import private
from sphynx.cli.bench_throughput import throughput
from sphynx.cli.group import VerbGroup

app = typer.Typer(
    cls=VerbGroup,
    help="Measure speed, compared with bounds and with other software.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback()
def bench() -> None:
    """Measure speed, compared with bounds and with other software."""


app.command("private")(private)
app.command("throughput")(throughput)
