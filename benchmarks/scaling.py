"""How private latency grows with the number of ReLUs, with fitted lines: `python -m benchmarks.scaling`."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from tools.command import run as run_command

from benchmarks.lines import fits
from sphynx.bench.private_models import untrained_design
from sphynx.bench.results import LineFit
from sphynx.cli import bench_options as bench
from sphynx.cli import options as opt
from sphynx.cli.output import count, print_table
from sphynx.cli.output_files import Out, figure_file
from sphynx.errors import InputError
from sphynx.report.scaling_figure import save_scaling


def scaling(
    sizes: Annotated[
        str,
        typer.Option(
            "--sizes",
            help="ReLU counts of the networks: the paper's network of that size if there is one, else a planned one.",
        ),
    ] = "25.6k,51.2k,102.4k,153.6k,230.4k",
    backend: bench.Backends = "gc,gmw",
    link: bench.Links = "loopback",
    repeat: bench.Repeat = 5,
    conv_stack: bench.UntrainedStack = "single",
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Draw it: a .svg or .png file.", callback=figure_file(".svg", ".png")),
    ] = None,
    out: Out = None,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Measure private inference for several ReLU counts, and fit lines: seconds = a + b x ReLUs.

    Measured as in `sphynx bench private`. The weights are random, with the number ranges of trained networks. The
    largest network takes about 5 GB of memory, both parties together.

    Examples:

      python -m benchmarks.scaling -o scaling.json --figure scaling.svg

      python -m benchmarks.scaling --sizes 10k,20k,40k --backend gmw --link lan --repeat 3
    """
    _require_two_counts(sizes)
    voice = opt.voice_for(verbose, quiet)
    with tempfile.TemporaryDirectory(prefix="sphynx-bench-") as temporary:
        run = bench.measure(None, sizes, backend, link, repeat, conv_stack, Path(temporary), voice)
    run = dataclasses.replace(run, fits=fits(run.rows))
    bench.hand_out(run.to_json(), as_json, out)
    if figure is not None:
        save_scaling(run.to_json(), figure)
    if not as_json:
        bench.print_rows("Private inference by ReLUs", run)
        _print_fits(run.fits or ())
    bench.require_exact(run, "benchmarks.scaling")


def _require_two_counts(sizes: str) -> None:
    """Through one number of ReLUs no line can be fitted; two sizes may well be planned as networks of one number."""
    relus = {size: untrained_design(size, "single").relus for size in bench.sizes_in(sizes)}
    if len(set(relus.values())) < 2:
        found = ", ".join(f"{size} has {count(number)} ReLUs" for size, number in relus.items())
        raise InputError(
            f"fewer than two different sizes: {found or 'none'}",
            where="--sizes",
            remedy="A line needs networks of two or more ReLU counts: 25.6k,51.2k.",
        )


def _print_fits(found: Sequence[LineFit]) -> None:
    print_table(
        "seconds = a + b x ReLUs, least squares",
        ["ReLU", "link", "phase", ">a", ">b per ReLU", ">R²", ">networks"],
        (
            [
                fit.backend,
                fit.link,
                fit.phase,
                f"{1e3 * fit.intercept_s:.1f} ms",
                f"{1e6 * fit.s_per_relu:.3f} µs",
                f"{fit.r_squared:.4f}",
                str(fit.networks),
            ]
            for fit in found
        ),
    )


if __name__ == "__main__":
    run_command(scaling)
