"""`sphynx show`: a design or genotype as a table of layers and as pictures of its cells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import design_options as opt
from sphynx.cli.output import count, print_json, print_table, short

if TYPE_CHECKING:
    from sphynx.space.design import Design


def show(
    what: Annotated[str, typer.Argument(help="A design.json, a genotype file, or a published genotype's name.")],
    channels: Annotated[int, typer.Option("--channels", "-C", help="Initial channels.")] = 5,
    depth: Annotated[int, typer.Option("--depth", "-D", help="Number of cells.")] = 5,
    reduce_at: Annotated[
        str | None, typer.Option("--reduce-at", help="Reduce positions, as 0,1. Default: D/3, 2D/3.")
    ] = None,
    image_size: opt.ImageSize = 32,
    image_channels: opt.ImageChannels = 3,
    classes: opt.Classes = 100,
    stem: opt.StemOption = "auto",
    balancing: opt.Balancing = "relu",
    conv_stack: opt.ConvStack = "paper",
    convolution: opt.Convolution = "vanilla",
    svg: Annotated[Path | None, typer.Option("--svg", help="Draw the cells into this folder.")] = None,
    as_json: opt.Json = False,
) -> None:
    """Show a design: its layers with shapes, ReLUs, parameters and MACs, and its cells as SVG.

    The flags that describe a network apply to a genotype; a design.json brings its own.

    Examples:

      sphynx show sphynx --channels 5 --depth 5 --reduce-at 0,1

      sphynx show design.json --svg pictures/

      sphynx show pc-darts --json
    """
    from sphynx.space.account import account_of

    design = _design_file(what) or opt.design_for(
        cells=what, channels=channels, depth=depth,
        reduce_positions=None if reduce_at is None else opt.parse_positions(reduce_at),
        image_size=image_size, image_channels=image_channels, classes=classes, stem=stem,
        balancing=balancing, conv_stack=conv_stack, convolution=convolution,
    )  # fmt: skip
    account = account_of(design)
    pictures = _draw(design, svg) if svg is not None else []
    if as_json:
        print_json(
            {
                "design": design.to_json(),
                "relus": account.total.relus,
                "parameters": account.total.parameters,
                "macs": account.total.macs,
                "layers": [{**vars(row), "output": list(row.output)} for row in account.rows],
                "pictures": [str(path) for path in pictures],
            }
        )
        return
    rows = [
        [row.name, row.kind, str(row.output), count(row.relus), count(row.parameters), short(row.macs)]
        for row in account.rows
    ]
    total = account.total
    rows.append(["all", "", "", count(total.relus), count(total.parameters), short(total.macs)])
    cells = design.genotype.name or "unnamed"
    print_table(
        f"C={design.channels} D={design.depth} reduce at {design.reduce_positions}, {cells} cells",
        ["layer", "kind", "output", ">ReLUs", ">parameters", ">MACs"],
        rows,
    )
    for path in pictures:
        typer.echo(f"wrote {path}", err=True)


def _design_file(what: str) -> Design | None:
    """The design in a file, if `what` is a file with one; a genotype file is not."""
    from sphynx.space.design import FORMAT, design_from_json
    from sphynx.space.genotype import read_json

    path = Path(what)
    if not path.is_file():
        return None
    data = read_json(path)
    if isinstance(data, dict) and str(data.get("format", "")).split("/")[0] == FORMAT.split("/")[0]:
        return design_from_json(data, where=what)
    return None


def _draw(design: Design, folder: Path) -> list[Path]:
    from sphynx.report.cell_svg import cell_svg

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for kind, cell in (("normal", design.genotype.normal), ("reduce", design.genotype.reduce)):
        path = folder / f"{kind}.svg"
        path.write_text(cell_svg(cell, title=f"{design.genotype.name or 'cell'}: {kind}"))
        paths.append(path)
    return paths
