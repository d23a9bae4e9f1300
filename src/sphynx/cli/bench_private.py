"""`sphynx bench private`: latency and traffic of private inference, beside the same network in the clear."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from sphynx.cli import bench_options as bench
from sphynx.cli import options as opt
from sphynx.cli.output_files import Out
from sphynx.program.extensions import ExtensionChoice

Plain = Annotated[bool, typer.Option("--plain", help="Run without TLS, to measure the protocol alone.")]


def private(
    programs: bench.Programs = None,
    untrained: bench.Untrained = "",
    backend: bench.Backends = "gc,gmw",
    security: Annotated[
        str, typer.Option("--security", help="semi-honest, malicious-client (garbled circuits only), or both.")
    ] = "semi-honest",
    reveal: Annotated[
        str, typer.Option("--reveal", help="What the client gets: logits, label (of classes), or both.")
    ] = "logits",
    ot: Annotated[
        ExtensionChoice,
        typer.Option("--ot", help="OT extension; auto: the faster one on the link for a client that asks often."),
    ] = "auto",
    link: bench.Links = "loopback",
    repeat: bench.Repeat = 10,
    passes: Annotated[
        int, typer.Option("--passes", min=1, help="How often all rows are measured in turn, to compare them fairly.")
    ] = 1,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Images per inference.")] = 1,
    conv_stack: bench.UntrainedStack = "single",
    plain: Plain = False,
    weight_memory: opt.WeightMemory = "",
    out: Out = None,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Measure private inference between two processes on this machine, compared with the same network in the clear.

    The two talk over mutual TLS. In the clear: torch and, if installed, ONNX Runtime, fp32, two threads; ratios (x) are
    relative to the faster. Every private result is compared with the integer oracle; the command fails if one differs.
    Links other than loopback are emulated by delays. For the time of a compiled folder in the clear, copy the run's
    design.json into it.

    Examples:

      sphynx bench private --untrained 25.6k,51.2k --link loopback,lan,wan

      sphynx bench private sphynx-cifar100-25k compiled/digits --backend gmw -o private.json

      sphynx bench private sphynx-cifar100-25k --backend gc --security semi-honest,malicious-client

      sphynx bench private stream-chest-xray-11k --reveal logits,label
    """
    voice = opt.voice_for(verbose, quiet)
    with tempfile.TemporaryDirectory(prefix="sphynx-bench-") as temporary:
        run = bench.measure(
            programs,
            untrained,
            backend,
            link,
            repeat,
            conv_stack,
            Path(temporary),
            voice,
            batch=batch,
            passes=passes,
            plain=plain,
            weight_memory_bytes=opt.parse_memory(weight_memory, "--weight-memory"),
            security=security,
            reveal=reveal,
            ot=ot,
        )
    bench.hand_out(run.to_json(), as_json, out)
    if not as_json:
        bench.print_rows("sphynx bench private", run)
    bench.require_exact(run, "bench private")
