"""`sphynx check`: how a compiled program does on data, in exact integers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sphynx.cli.design_options import Json
from sphynx.cli.output import count, print_json, print_table
from sphynx.cli.train import DataOption, DataSize
from sphynx.errors import InputError


def check(
    compiled: Annotated[Path, typer.Argument(help="A folder that `sphynx compile` wrote.")],
    data: DataOption,
    run: Annotated[
        str, typer.Option("--run", help="The trained run or model it was compiled from: its float accuracy as well.")
    ] = "",
    split: Annotated[str, typer.Option("--split", help="test or train.")] = "test",
    image_size: DataSize = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw each map's values, range and bound beside the ring: an .svg.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Evaluate a compiled program as private inference will: integer accuracy, agreement with float, range use.

    Examples:

      sphynx check compiled/digits --data digits

      sphynx check compiled/digits --data digits --run runs/digits --json

      sphynx check compiled/digits --data digits --figure ranges.svg
    """
    from sphynx.data.open import open_data
    from sphynx.network.model import load_model, load_normalisation
    from sphynx.program.check import check as check_program
    from sphynx.program.files import load_program
    from sphynx.program.weights import load_weights
    from sphynx.space.shipped import model_path

    if split not in ("test", "train"):
        raise InputError(f"there is no split {split!r}", where="--split", remedy="Use test or train.")
    program = load_program(compiled)
    weights = load_weights(compiled, program)
    opened = open_data(data, image_size=image_size)
    path = model_path(run) if run else None
    network, normalisation = (None, None) if path is None else (load_model(path), load_normalisation(path))
    images = opened.test if split == "test" else opened.train
    result = check_program(program, weights, images, network, normalisation)
    if figure is not None:
        from sphynx.report.ranges_figure import draw_ranges

        draw_ranges(result.layers, program.ring_bits, figure)
    if as_json:
        print_json({"compiled": str(compiled), "data": opened.name, "split": split, **result.to_json()})
        return
    rows = [["integer accuracy", f"{result.accuracy:.2%}"]]
    if result.float_network is not None:
        rows += [
            ["float accuracy", f"{result.float_network.accuracy:.2%}"],
            ["same class", f"{result.float_network.agreement:.2%}"],
            ["largest logit difference", f"{result.float_network.largest_difference:.3f}"],
        ]
    print_table(f"{compiled} on {count(result.images)} {split} images of {opened.name}", ["", ">"], rows)
    print_table(
        f"Bits of each linear map; the ring has {program.ring_bits}",
        ["linear map", ">range", ">used", ">worst case"],
        (
            [
                layer.name,
                str(layer.range_bits) if layer.range_bits else "chain",
                str(layer.used_bits),
                str(layer.bound_bits),
            ]
            for layer in result.layers
        ),
    )
