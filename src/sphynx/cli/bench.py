"""`sphynx bench`: how fast this machine is at what private inference needs, beside its own bounds."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sphynx.cli.bench_options import hand_out
from sphynx.cli.bench_private import private
from sphynx.cli.bench_scaling import scaling
from sphynx.cli.bench_throughput import throughput
from sphynx.cli.design_options import Json
from sphynx.cli.output import print_table
from sphynx.cli.output_files import Out
from sphynx.errors import InputError

app = typer.Typer(help="Measure speed beside bounds and peers.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def bench() -> None:
    """Measure speed beside bounds and peers."""


@app.command("core")
def core(
    as_json: Json = False,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Every number is the best of this many runs or more.")
    ] = 15,
    threads: Annotated[
        str, typer.Option("--threads", help="all: garbling and OT on one core, then on all; 1: on one core only.")
    ] = "all",
    out: Out = None,
) -> None:
    """Measure the compiled core: AES, garbling, OT, RLWE beside SEAL, ring convolution beside torch.

    One core is timed by its CPU time, all cores by the wall clock, so run the latter on a quiet machine.

    Example:

      sphynx bench core --threads 1 --repeats 40
    """
    if threads not in ("all", "1"):
        raise InputError(f"--threads {threads!r} is neither all nor 1", remedy="Use --threads all or --threads 1.")
    from sphynx.bench.core import measure_core

    results = measure_core(repeats, all_cores=threads == "all", progress=lambda part: typer.echo(part, err=True))
    hand_out(results, as_json, out)
    if not as_json:
        _print_tables(results)


def _print_tables(results: dict[str, Any]) -> None:
    from sphynx.bench.core_table import RING_GOALS, rate_rows, ring_rows

    machine = results["machine"]
    where = (
        f"{machine['architecture']}, {machine['cores']} cores, AES path {machine['aes_path']}, "
        f"load {machine['load_average'][0]} at the start; best of {results['repeats']} or more"
    )
    print_table(
        "sphynx bench core", ["what", ">measured", ">bound or peer", ">ratio", "goal"], rate_rows(results), note=where
    )
    columns = (
        f">k = {bits}" + (f" (goal <= {RING_GOALS[bits]})" if bits in RING_GOALS else "") for bits in (32, 40, 64)
    )
    print_table(
        "Ring convolution, one core, 8-bit weights: time relative to torch's fp32",
        ["shape", ">GMAC/s, k = 32", ">torch", *columns],
        ring_rows(results),
        note=f"OT: {results['ot_bytes_each']:.3f} bytes each. Peers: {results['seal']}; torch {results['torch']}",
    )


app.command("private")(private)
app.command("throughput")(throughput)
app.command("scaling")(scaling)
