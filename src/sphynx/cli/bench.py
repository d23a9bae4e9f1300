"""`sphynx bench`: how fast this machine is at what private inference needs. The group of its verbs."""

from __future__ import annotations

from sphynx.cli.bench_private import private
from sphynx.cli.bench_throughput import throughput
from sphynx.cli.group import Verbs

app = Verbs(
    help="Measure speed, compared with bounds and with other software.",
    no_args_is_help=True,
)


@app.callback()
def bench() -> None:
    """Measure speed, compared with bounds and with other software."""


app.command("private")(private)
app.command("throughput")(throughput)
