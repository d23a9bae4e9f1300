"""`sphynx bench private`: latency and traffic of private inference, beside the same network in the clear."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import bench_options as opt
from sphynx.cli.design_options import Json
from sphynx.cli.output import print_table
from sphynx.cli.output_files import Out

if TYPE_CHECKING:
    from sphynx.bench.results import BenchRun

Repeat = Annotated[int, typer.Option("--repeat", min=1, help="Medians are over this many inferences.")]
Plain = Annotated[bool, typer.Option("--plain", help="Without TLS: the cost of the protocol alone.")]


def private(
    programs: opt.Programs = None,
    untrained: opt.Untrained = "",
    relu: opt.ReluBackends = "gc,gmw",
    link: opt.Links = "loopback",
    repeat: Repeat = 10,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Images per inference.")] = 1,
    conv_stack: opt.UntrainedStack = "single",
    plain: Plain = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Measure private inference between two processes on this machine, beside the same network in the clear.

    The two talk over mutual TLS. In the clear: torch fp32, not fused, two threads. Every private result is held
    against the integer oracle; the command fails if one differs. Links other than loopback are emulated by delays.
    A compiled folder has a time in the clear if the run's design.json lies in it: copy it there.

    Examples:

      sphynx bench private --untrained 25.6k,51.2k --link loopback,lan,wan

      sphynx bench private sphynx-cifar100-25k compiled/digits --relu gmw -o private.json
    """
    with tempfile.TemporaryDirectory(prefix="sphynx-bench-") as temporary:
        run = measured(programs, untrained, relu, link, repeat, conv_stack, Path(temporary), batch=batch, plain=plain)
    opt.hand_out(run.to_json(), as_json, out)
    if not as_json:
        print_rows("sphynx bench private", run)
    opt.require_exact(run, "bench private")


def measured(
    programs: list[str] | None,
    untrained: str,
    relu: str,
    link: str,
    repeat: int,
    conv_stack: str,
    folder: Path,
    *,
    batch: int = 1,
    plain: bool = False,
) -> BenchRun:
    backends, links = opt.parse_backends(relu, "--relu"), opt.links_for(link)
    made = opt.describe_run()
    models = opt.models_for(programs, untrained, conv_stack, folder)
    from sphynx.bench.private import measure_private
    from sphynx.bench.private_parties import plain_channel
    from sphynx.bench.results import BenchRun
    from sphynx.service.local import make_local_keys

    open_channel = plain_channel if plain else make_local_keys(folder / "keys").open_channel
    rows = measure_private(
        models, backends, links, repeats=repeat, batch=batch, open_channel=open_channel,
        transport="plain" if plain else "TLS 1.3", progress=opt.tell,
    )  # fmt: skip
    return BenchRun(*made, rows)


def print_rows(title: str, run: BenchRun) -> None:
    from sphynx.bench.tables import PRIVATE_COLUMNS, private_rows

    first = run.rows[0]
    print_table(
        title,
        PRIVATE_COLUMNS,
        private_rows(run.rows),
        note=f"medians of {first.repeats}; {first.transport}; {opt.machine_words(run)}; x: times the clear",
    )
