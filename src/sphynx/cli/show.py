"""`sphynx show`: a design or genotype as a table of layers, and as pictures of its cells and its skeleton."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import count, print_json, print_table
from sphynx.cli.output_files import out_file, picture_folder
from sphynx.cli.reference_networks import (
    REFERENCES,
    STREAM,
    reference_network,
    refuse_meaningless_flags,
    stream_network,
)
from sphynx.errors import InputError
from sphynx.units import short_number

if TYPE_CHECKING:
    from sphynx.space.design import Design
    from sphynx.space.files import AnyDesign
    from sphynx.space.stream import StreamDesign


def show(
    context: typer.Context,
    what: Annotated[
        str,
        typer.Argument(
            help="A design.json, a run folder, a model's or a published genotype's name, resnet18, vgg11, "
            "wide-resnet, or stream."
        ),
    ],
    channels: Annotated[
        int | None,
        typer.Option(
            "--channels",
            "-C",
            help="Initial channels. [default: 5; 64 for resnet18 and vgg11; a factor of 10 for wide-resnet]",
        ),
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            "--depth", "-D", help="Number of cells, or of layers for wide-resnet. [default: 5; 28 for wide-resnet]"
        ),
    ] = None,
    reduce_at: Annotated[
        str | None, typer.Option("--reduce-at", help="Reduce positions, such as 0,1. [default: D/3, 2D/3]")
    ] = None,
    image_size: opt.ImageSize = 32,
    image_channels: opt.ImageChannels = 3,
    classes: opt.Classes = 100,
    stem: opt.StemOption = "auto",
    pool: opt.PoolOption = "average",
    balancing: opt.BalancingOption = "relu",
    conv_stack: opt.ConvStackOption = "single",
    convolution: opt.ConvolutionOption = "vanilla",
    stages: Annotated[
        str,
        typer.Option(
            "--stages",
            help="Stages of a stream network, as map:W:C of each block: 16:64:12 8:128:56x3 4:256:256x2,216; "
            "before them a stem other than 5x5, such as 9x9/4.",
        ),
    ] = "",
    borders: opt.BordersOption = "halo",
    svg: Annotated[
        Path | None, typer.Option("--svg", help="Draw cells and skeleton into this folder.", callback=picture_folder)
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the design.json here.", callback=out_file)
    ] = None,
    as_json: opt.Json = False,
) -> None:
    """Show a design: its layers with shapes, ReLUs, parameters and MACs; its cells and its skeleton as SVG.

    The flags that describe a network apply to a name or a genotype; a design.json brings its own.

    Examples:

      sphynx show sphynx --channels 5 --depth 5 --reduce-at 0,1

      sphynx show design.json --svg pictures/

      sphynx show resnet18 --image-size 32 -o teacher.json

      sphynx show pc-darts --json

      sphynx show stream --stages "16:64:12 8:128:56x3 4:256:256x2,216" -o stream.json
    """
    from sphynx.space.design import Design, parse_positions
    from sphynx.space.stream import StreamDesign

    design: AnyDesign | None = _design_file(what)
    if design is None:
        refuse_meaningless_flags(context, what)
    if design is None and what in REFERENCES:
        design = reference_network(what, channels, depth, image_size, image_channels, classes, stem, pool)
    if design is None and what == STREAM:
        design = stream_network(stages, borders, image_size, image_channels, classes)
    if design is None:
        design = opt.design_for(
            cells=what,
            channels=5 if channels is None else channels,
            depth=5 if depth is None else depth,
            reduce_positions=None if reduce_at is None else parse_positions(reduce_at),
            image_size=image_size,
            image_channels=image_channels,
            classes=classes,
            stem=stem,
            balancing=balancing,
            conv_stack=conv_stack,
            convolution=convolution,
        )
    account = design.account
    written: list[Path] = []
    if svg is not None:
        if not isinstance(design, Design | StreamDesign):
            raise InputError(
                "only networks of Sphynx cells and streams can be drawn", where="--svg", remedy="Leave --svg out."
            )
        written += _draw(design, svg)
    if out is not None:
        design.save(out)
        written.append(out)
    if as_json:
        print_json(
            {
                "design": design.to_json(),
                "relus": account.total.relus,
                "comparisons": account.total.comparisons,
                "parameters": account.total.parameters,
                "macs": account.total.macs,
                "layers": [{**vars(row), "output": list(row.output)} for row in account.rows],
                "written": [str(path) for path in written],
            }
        )
        return
    rows = [
        [
            row.name,
            row.kind,
            str(row.output),
            *map(count, (row.relus, row.comparisons, row.parameters)),
            short_number(row.macs),
        ]
        for row in account.rows
    ]
    total = account.total
    rows.append(
        ["all", "", "", *map(count, (total.relus, total.comparisons, total.parameters)), short_number(total.macs)]
    )
    print_table(_title(design), ["layer", "kind", "output", ">ReLUs", ">comparisons", ">parameters", ">MACs"], rows)
    for path in written:
        typer.echo(f"wrote {path}", err=True)


def _title(design: AnyDesign) -> str:
    from sphynx.report.naming import describe_network
    from sphynx.space.design import Design
    from sphynx.space.micro import MicroDesign
    from sphynx.space.reduced import ReducedDesign

    if isinstance(design, ReducedDesign):
        return f"{_title(design.base)}, reduced"
    if not isinstance(design, Design | MicroDesign):
        return describe_network(design)
    cells = design.genotype.name or "unnamed"
    space = " of the micro space" if isinstance(design, MicroDesign) else ""
    return f"C={design.channels} D={design.depth} reduce at {design.reduce_positions}, {cells} cells{space}"


def _design_file(what: str) -> AnyDesign | None:
    """The design in a file, if `what` is a file, a run or a model with one; a genotype file is not."""
    from sphynx.api.models import list_models, load_design
    from sphynx.space.files import is_design
    from sphynx.space.json_file import read_json
    from sphynx.space.published_cells import GENOTYPES

    models, path = list_models(), Path(what)
    if what in models and not path.exists():
        return load_design(what)
    names = (*GENOTYPES, *REFERENCES, STREAM)
    if not path.exists() and not what.endswith(".json") and what not in names:
        raise InputError(
            "no file, folder or network has this name",
            where=what,
            remedy=f"Give a design.json, a run folder, or one of {', '.join((*names, *models))}.",
        )
    if path.is_dir():
        path = path / "design.json"
        if not path.is_file() and what not in names:
            raise InputError("the folder contains no design.json", where=what, remedy="Give a run folder, or a file.")
    return load_design(path) if path.is_file() and is_design(read_json(path)) else None


def _draw(design: Design | StreamDesign, folder: Path) -> list[Path]:
    from sphynx.report.skeleton import draw_skeleton
    from sphynx.space.cell_svg import cell_svg
    from sphynx.space.stream import StreamDesign

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    if not isinstance(design, StreamDesign):
        for kind, cell in (("normal", design.genotype.normal), ("reduce", design.genotype.reduce)):
            path = folder / f"{kind}.svg"
            path.write_text(cell_svg(cell, title=f"{design.genotype.name or 'cell'}: {kind}"))
            paths.append(path)
    paths.append(folder / "skeleton.svg")
    paths[-1].write_text(draw_skeleton(design).to_svg())
    return paths
