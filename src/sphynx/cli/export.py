"""`sphynx export`: a trained network as an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import print_json
from sphynx.cli.output_files import out_file


def export(
    run: Annotated[str, typer.Argument(help="A trained run folder, its model.safetensors, or a model's name.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write: model.onnx.", callback=out_file)],
    as_json: opt.Json = False,
) -> None:
    """Write a trained network as ONNX, for other runtimes. It reads pixels / 255, and normalises them itself.

    Examples:

      sphynx export runs/digits -o digits.onnx

      sphynx export sphynx-cifar100-25k -o sphynx.onnx
    """
    from sphynx.api.exporting import export_network

    written = export_network(run, out)
    if as_json:
        print_json({"out": str(written), "bytes": written.stat().st_size})
    else:
        typer.echo(f"{written}: {written.stat().st_size:,} bytes, from pixels / 255 to logits")
