"""`sphynx bench throughput`: sustained private inferences per second, the offline phase included."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import bench_options as bench
from sphynx.cli import options as opt
from sphynx.cli.output import print_table
from sphynx.cli.output_files import Out
from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.program.cost.link import Link
    from sphynx.service.local import LocalServer

MAX_CLIENTS = 16  # from one address


def throughput(
    programs: bench.Programs = None,
    untrained: bench.Untrained = "",
    backend: bench.Backends = "gc,gmw",
    clients: Annotated[str, typer.Option("--clients", help="Clients at once, each a process: 1,2,4.")] = "1,2",
    link: bench.Links = "loopback",
    seconds: Annotated[float, typer.Option("--seconds", min=0, help="Seconds per row, or slightly more.")] = 20.0,
    conv_stack: bench.UntrainedStack = "single",
    out: Out = None,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Measure how many private inferences per second a server on this machine sustains, everything included.

    `sphynx serve` runs in a process of its own, and so does every client, over mutual TLS. A client prepares a bundle,
    uses it and begins again. Every result is compared with the integer oracle; the command fails if one differs. All
    share this machine's cores: a server with its cores to itself sustains more. Links other than loopback are emulated
    by delays, one for each client.

    Examples:

      sphynx bench throughput sphynx-cifar100-25k --clients 1,2,4 --seconds 30

      sphynx bench throughput --untrained 25.6k --backend gmw --link loopback,lan -o throughput.json
    """
    backends, links, counts = opt.parse_backends(backend, "--backend"), bench.links_for(link), parse_clients(clients)
    made = bench.describe_run()
    from sphynx.bench.results import ThroughputRun
    from sphynx.bench.tables import THROUGHPUT_COLUMNS, throughput_rows
    from sphynx.bench.throughput import measure_throughput

    voice = opt.voice_for(verbose, quiet)
    with tempfile.TemporaryDirectory(prefix="sphynx-bench-") as temporary:
        models = bench.models_for(programs, untrained, conv_stack, Path(temporary), voice)
        rows = measure_throughput(models, backends, links, counts, serve, seconds=seconds, progress=voice.say)
    run = ThroughputRun(*made, rows)
    bench.hand_out(run.to_json(), as_json, out)
    if not as_json:
        print_table(
            "sphynx bench throughput",
            THROUGHPUT_COLUMNS,
            throughput_rows(rows),
            note=f"latency: offline and online, medians; CPU per inference; {rows[0].transport}; "
            f"server and clients on one machine: {bench.machine_words(run)}",
        )
    bench.require_exact(run, "bench throughput")


@contextmanager
def serve(folder: Path, clients: int, link: Link | None) -> Iterator[LocalServer]:
    """One server for one row: no bundle is left from the row before."""
    from sphynx.service.local import running_server
    from sphynx.service.settings import Limits

    # A benchmark asks as often as it can, and may wait long for its turn.
    unhindered = Limits(images_per_hour=10**9, message_s=600.0, queue_s=300.0)
    with (
        tempfile.TemporaryDirectory(prefix="sphynx-bench-") as temporary,
        running_server(folder, Path(temporary), clients=clients, link=link, limits=unhindered) as server,
    ):
        yield server


def parse_clients(text: str) -> list[int]:
    counts = [int(word) for word in text.split(",") if word.strip().isdecimal()]
    if not counts or len(counts) != len(text.split(",")) or not all(0 < count <= MAX_CLIENTS for count in counts):
        raise InputError(
            f"{text!r} are not valid numbers of clients",
            where="--clients",
            remedy=f"Write them as 1,2,4, each up to {MAX_CLIENTS}.",
        )
    return counts
