"""`sphynx compile`: a trained network as a fused fixed-point program for private inference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.compile_table import cost_line, print_program, program_json
from sphynx.cli.judgement_lines import judgement_line
from sphynx.cli.output import count, print_json, print_table
from sphynx.cli.output_files import out_folder
from sphynx.cli.wording import warner
from sphynx.errors import InputError
from sphynx.program.backends import BackendChoice

if TYPE_CHECKING:
    from sphynx.api.compiled import Compiled
    from sphynx.compiler.precision import Precision


def _print_operators(wanted: bool) -> None:
    if not wanted:
        return
    from sphynx.compiler.frontend.operators.finals import FINALS
    from sphynx.compiler.frontend.operators.network import APPROXIMATED, COMPILED

    typer.echo(f"anywhere: {', '.join(COMPILED)}")
    typer.echo(f"with --approximate: {', '.join(APPROXIMATED)}")
    typer.echo(f"at the end, over all classes: {', '.join(FINALS)}")
    raise typer.Exit


def compile_run(
    context: typer.Context,
    run: Annotated[
        str,
        typer.Argument(
            help="A trained run folder, its model.safetensors, a model's name, a network.onnx or .pt2 file."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="The folder for program.json and weights.safetensors.", callback=out_folder),
    ],
    calibrate: Annotated[
        str,
        typer.Option("--calibrate", help="Data like the network's training data. [default: the run's own]"),
    ] = "",
    mean: Annotated[
        str,
        typer.Option(
            "--mean",
            help="For an ONNX or .pt2 file: subtracted from pixel/255; one number, or one per channel. [default: 0]",
        ),
    ] = "",
    std: Annotated[
        str,
        typer.Option(
            "--std",
            help="For an ONNX or .pt2 file: the divisor of the result; one number, or one per channel. [default: 1]",
        ),
    ] = "",
    weight_bits: Annotated[
        int | None,
        typer.Option("--weight-bits", help="Bits of a weight, 6 to 16. [default: as many as accuracy needs]"),
    ] = None,
    activation_bits: Annotated[
        int | None,
        typer.Option("--activation-bits", help="With --weight-bits: bits that a ReLU keeps, 4 to 24. [default: 10]"),
    ] = None,
    link_bits: Annotated[
        int | None,
        typer.Option(
            "--link-bits",
            help="With --weight-bits: bits of a weight inside a chain of maps, 4 to 16. [default: one bit less]",
        ),
    ] = None,
    approximate: Annotated[
        bool,
        typer.Option(
            "--approximate", help="Allow smooth activations (Sigmoid, SiLU, GELU ...), as piecewise-linear functions."
        ),
    ] = False,
    knees: Annotated[
        int, typer.Option("--knees", help="With --approximate: ReLUs that a smooth activation may use, 1 to 32.")
    ] = 8,
    derivable: Annotated[
        bool,
        typer.Option(
            "--derivable",
            help="For a model that comes with Sphynx: write corrections.safetensors instead of the weights, which "
            "are derived from it and the model when they are needed.",
        ),
    ] = False,
    backend: Annotated[
        BackendChoice, typer.Option("--backend", help="Cut the network for this ReLU protocol; auto: the cheaper one.")
    ] = "auto",
    link: opt.LinkOption = "lan",
    bundles: Annotated[
        int, typer.Option("--bundles", min=1, help="How many bundles will be prepared at once: they share messages.")
    ] = 1,
    weight_memory: opt.WeightMemory = "",
    accept_error: Annotated[
        float | None,
        typer.Option(
            "--accept-error",
            help="Accept logits that are off by up to this share of their spread. [default: 0.1]",
        ),
    ] = None,
    image_size: opt.DataSize = None,
    stream: opt.KnownStream = None,
    skip_bad: opt.SkipBad = False,
    as_json: opt.Json = False,
    _operators: Annotated[
        bool,
        typer.Option(
            "--operators",
            callback=_print_operators,
            is_eager=True,
            help="List the operators that networks from elsewhere may have, and exit.",
        ),
    ] = False,
) -> None:
    """Fold, fuse and quantise a trained network. program.json is public, weights.safetensors is the server's secret.

    A program whose logits are off by more than a tenth of their spread is not written: the exit code is 1.

    Examples:

      sphynx compile runs/digits -o compiled/digits

      sphynx compile runs/paper/seed-0 --calibrate cifar100 --weight-bits 10 -o compiled/paper

      sphynx compile sphynx-cifar100-25k -o models/src/sphynx_models/sphynx-cifar100-25k/program --derivable

      sphynx compile mine.pt2 --calibrate cifar10 -o compiled/mine

      sphynx compile mine.onnx --calibrate cifar10 --mean 0.49,0.48,0.45 --std 0.25,0.24,0.26 -o compiled/mine

      sphynx compile --operators

      sphynx compile smooth.onnx --calibrate cifar10 --approximate --knees 12 -o compiled/smooth
    """
    from sphynx.api.compiling import compile as compile_network
    from sphynx.program.cost.deployment import Deployment
    from sphynx.program.cost.link import parse_link
    from sphynx.space.artifact import is_foreign
    from sphynx.zoo.shipped import PROGRAM, model_path

    if derivable and (is_foreign(run) or out.resolve().parent != model_path(run).resolve()):
        place = "" if is_foreign(run) else f", or compile into the model's folder: -o {model_path(run) / PROGRAM}"
        raise InputError(
            "it only works for a program inside the folder of a packed model",
            where="--derivable",
            remedy=f"Leave it out{place}.",
        )
    deployment = Deployment(
        opt.backend_for(backend), parse_link(link), bundles, opt.parse_memory(weight_memory, "--weight-memory")
    )
    compiled = compile_network(
        run,
        calibrate=calibrate or None,
        mean=_numbers(mean, "--mean"),
        std=_numbers(std, "--std"),
        precision=_precision(weight_bits, activation_bits, link_bits),
        image_size=image_size,
        stream=stream,
        skip_bad=skip_bad,
        approximate=approximate,
        knees=knees,
        deployment=deployment,
        accept_error=accept_error,
        warn=warner(context),
    )
    compiled.save(out, derivable=derivable)
    if as_json:
        print_json(
            {
                "out": str(out),
                **program_json(compiled.program, deployment),
                "logit_error": compiled.logit_error,
                "float_network": None if compiled.judged is None else compiled.judged.to_json(),
                "approximations": [found.to_json() for found in compiled.approximations],
                "approximation_error": compiled.approximation_error,
            }
        )
        return
    judged = [] if compiled.judged is None else [judgement_line(compiled.judged)]
    print_program(compiled.program, f"Compiled: {out}", [cost_line(compiled.program, deployment), *judged])
    if compiled.approximations:
        _print_approximations(compiled)


def _print_approximations(compiled: Compiled) -> None:
    print_table(
        "Approximated",
        ["layer", "function", ">knees", ">from", ">to", ">rms error", ">largest"],
        (
            [
                found.layer,
                found.function,
                count(found.knees),
                f"{found.low:.3g}",
                f"{found.high:.3g}",
                f"{found.rms_error:.2g}",
                f"{found.largest_error:.2g}",
            ]
            for found in compiled.approximations
        ),
        note=f"errors in each layer's own units, on the calibration images; together they move the logits by "
        f"{compiled.approximation_error:.2%} of their spread: more --knees reduce this",
    )


def _precision(weight_bits: int | None, activation_bits: int | None, link_bits: int | None) -> Precision | None:
    """None: as many bits as accuracy needs."""
    from sphynx.compiler.precision import Precision

    if weight_bits is not None:
        return Precision(weight_bits, 10 if activation_bits is None else activation_bits, link_bits or 0)
    for bits, flag in ((activation_bits, "--activation-bits"), (link_bits, "--link-bits")):
        if bits is not None:
            raise InputError(
                "it needs --weight-bits: without it, all numbers of bits are found",
                where=flag,
                remedy=f"Give both, such as --weight-bits 10 {flag} {bits}, or leave {flag} out.",
            )
    return None


def _numbers(text: str, flag: str) -> tuple[float, ...] | None:
    if not text:
        return None
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"{text} is not one number per channel",
            where=flag,
            remedy="Give one number, or one per channel with commas between them: 0.5,0.5,0.5.",
        ) from None
