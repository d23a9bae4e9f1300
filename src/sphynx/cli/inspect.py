"""`sphynx inspect`: what a network file reads and gives, what keeps it from being compiled, what it would cost."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.inspection_table import print_inspection
from sphynx.cli.output import print_json, say_next
from sphynx.cli.record_flags import with_record_flags
from sphynx.cli.wording import with_flags
from sphynx.compiler.settings import CompileSettings

_LEFT_OUT = (
    "calibrate", "class_names", "mean", "std", "accept_error", "image_size", "stream", "skip_bad",
)  # fmt: skip


@with_record_flags
def inspect(
    context: typer.Context,
    network: Annotated[
        str, typer.Argument(help="A network.onnx or .pt2 file, a trained run folder, or a model's name.")
    ],
    *,
    as_json: opt.Json = False,
    settings: Annotated[CompileSettings, dict.fromkeys(_LEFT_OUT)],
) -> None:
    """Inspect a network in seconds, without compiling it: inputs, outputs, ReLUs, costs, and what prevents compiling.

    Exits with 1 if it cannot be compiled as it is.

    Examples:

      sphynx inspect mine.onnx

      sphynx inspect mine.onnx --input-shape 3x48x192 --input rate=16000 --json

      sphynx inspect smooth.onnx --approximate

      sphynx inspect sphynx-cifar100-25k
    """
    from sphynx.api.inspecting import inspect_network

    found = inspect_network(network, **vars(settings))
    if as_json:
        print_json(found.to_json())
    else:
        print_inspection(found, partial(with_flags, context=context))
    if not found.can_be_compiled:
        raise typer.Exit(1)
    if not as_json:
        say_next("sphynx", "compile", network, "--calibrate", "DATA", "-o", f"compiled/{Path(network).stem}")
