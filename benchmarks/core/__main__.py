"""How fast the compiled core is on this machine, beside its own bounds and peers: `python -m benchmarks.core`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer
from tools.command import run

from benchmarks.core.everything import measure_core
from benchmarks.core.ring import WIDTHS
from benchmarks.core.table import RING_GOALS, rate_rows, ring_rows
from sphynx.cli import options as opt
from sphynx.cli.bench_options import hand_out
from sphynx.cli.output import print_table
from sphynx.cli.output_files import Out

Threads = Literal["all", "1"]


def core(
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Every number is the best of this many runs or more.")
    ] = 15,
    threads: Annotated[
        Threads, typer.Option("--threads", help="all: garbling and OT on one core, then on all; 1: on one core only.")
    ] = "all",
    out: Out = None,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Measure the compiled core: AES, garbling, OT, RLWE against SEAL, ring convolution against torch.

    One core is timed in CPU time, all cores by the wall clock, which needs a quiet machine.

    Example:

      python -m benchmarks.core --threads 1 --repeats 40
    """
    voice = opt.voice_for(verbose, quiet)
    results = measure_core(repeats, all_cores=threads == "all", progress=voice.say)
    hand_out(results, as_json, out)
    if not as_json:
        _print_tables(results)


def _print_tables(results: dict[str, Any]) -> None:
    machine = results["machine"]
    where = (
        f"{machine['architecture']}, {machine['cores']} cores, AES path {machine['aes_path']}, "
        f"load {machine['load_average'][0]} at the start; best of {results['repeats']} or more"
    )
    print_table(
        "The compiled core", ["what", ">measured", ">bound or peer", ">ratio", "goal"], rate_rows(results), note=where
    )
    columns = (
        f">k = {ring}, {weights}-bit" + (f" (<= {RING_GOALS[ring, weights]})" if (ring, weights) in RING_GOALS else "")
        for ring, weights in WIDTHS
    )
    print_table(
        "Ring convolution by bits of ring and weights, one core: time relative to torch's fp32 (goal)",
        ["shape", ">GMAC/s, k = 32", ">torch", *columns],
        ring_rows(results),
        note=f"OT: {results['ot_bytes_each']:.3f} bytes each. Peers: {results['seal']}; torch {results['torch']}",
    )


if __name__ == "__main__":
    run(core)
