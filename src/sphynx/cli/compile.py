"""`sphynx compile`: a trained network as a fused fixed-point program for private inference."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.compile_table import cost_line, print_program, program_json
from sphynx.cli.inspection_table import print_blockers
from sphynx.cli.judgement_lines import judgement_line
from sphynx.cli.output import count, print_json, print_table, say_next
from sphynx.cli.output_files import out_folder
from sphynx.cli.record_flags import with_record_flags
from sphynx.cli.stages import shown_stages
from sphynx.cli.wording import warner, with_flags
from sphynx.compiler.precision import Precision
from sphynx.compiler.settings import CompileSettings
from sphynx.errors import InputError, SphynxError
from sphynx.program.cost.deployment import Deployment
from sphynx.units import percent

if TYPE_CHECKING:
    from sphynx.api.compiled import Compiled


def _print_operators(wanted: bool) -> None:
    if not wanted:
        return
    from sphynx.compiler.frontend.operators.finals import FINALS
    from sphynx.compiler.frontend.operators.network import APPROXIMATED, COMPILED

    typer.echo(f"anywhere: {', '.join(COMPILED)}")
    typer.echo(f"with --approximate: {', '.join(APPROXIMATED)}")
    typer.echo(f"at the end, over all classes: {', '.join(FINALS)}")
    raise typer.Exit


@with_record_flags
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
    *,
    derivable: Annotated[
        bool,
        typer.Option(
            "--derivable",
            help="For a model that comes with Sphynx: write corrections.safetensors instead of the weights, which "
            "are derived from it and the model when they are needed.",
        ),
    ] = False,
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
    settings: CompileSettings,
    precision: Precision,
    deployment: Deployment,
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
    from sphynx.api.compiling import compile_network
    from sphynx.space.artifact import is_foreign
    from sphynx.zoo.shipped import PROGRAM, model_path

    if derivable and (is_foreign(run) or out.resolve().parent != model_path(run).resolve()):
        place = "" if is_foreign(run) else f", or compile into the model's folder: -o {model_path(run) / PROGRAM}"
        raise InputError(
            "it only works for a program inside the folder of a packed model",
            where="--derivable",
            remedy=f"Leave it out{place}.",
        )
    bits = _bits_given(precision, context)
    settings = replace(settings, precision=bits, deployment=deployment, warn=warner(context))
    try:
        with shown_stages() as progress:
            compiled = compile_network(run, **vars(replace(settings, progress=progress)))
    except InputError:
        _show_blockers(run, settings, context)
        raise
    except KeyboardInterrupt:
        raise SphynxError("stopped; nothing was written", where=run, remedy="Run the same command again.") from None
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
    say_next("sphynx", "app", "--open", "--local", str(out))


def _show_blockers(run: str, settings: CompileSettings, context: typer.Context) -> None:
    """Print all that keeps a file from being compiled, as `sphynx inspect` does, where it is more than one thing."""
    from sphynx.space.artifact import is_foreign

    if not is_foreign(run) or not Path(run).is_file():
        return
    from sphynx.api.inspecting import inspect_network

    found = inspect_network(run, **vars(settings))
    if len(found.blockers) > 1:
        print_blockers(found, partial(with_flags, context=context))


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
        f"{percent(compiled.approximation_error)} of their spread: more --knees reduce this",
    )


def _bits_given(precision: Precision, context: typer.Context) -> Precision | None:
    """None where no flag asks for bits: as many as accuracy needs."""
    given = [name for name in vars(precision) if opt.given_flags(context, [name])]
    if not given or "weight_bits" in given:
        return precision if given else None
    name = given[0]
    raise InputError(
        "it needs `weight_bits`: without it, all bit widths are chosen automatically",
        where=f"`{name}`",
        remedy=f"Give both, such as `weight_bits=10` `{name}={getattr(precision, name)}`, or leave `{name}` out.",
    )
