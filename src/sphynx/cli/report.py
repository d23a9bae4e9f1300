"""`sphynx report`: one HTML page, and figures as files, from runs, results and benchmarks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sphynx.cli.options import Json
from sphynx.cli.output import print_json


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(help="Run folders, results files, names of models, JSON of `bench private` and `check`."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The page.")] = Path("report.html"),
    figures: Annotated[
        Path | None, typer.Option("--figures", help="Also write every figure there, as SVG and PNG.")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="The page's title.")] = "Sphynx report",
    as_json: Json = False,
) -> None:
    """Make one self-contained page: networks, cells, curves, comparison, private inference, model cards.

    What an input does not hold is left out. Results of another machine or version are labelled as such.

    Examples:

      sphynx report runs/digits -o report.html

      sphynx report sphynx-cifar100-25k results/cifar100 private.json -o report.html --figures figures/

      sphynx check compiled/ --data cifar100 --json > ranges.json; sphynx report runs/paper ranges.json -o report.html
    """
    from sphynx.report.page import make_report
    from sphynx.report.sources import read_sources
    from sphynx.run.environment import describe_environment
    from sphynx.train.processes import pick_device

    made = make_report(read_sources(runs), describe_environment(pick_device("auto")), title=title)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(made.html, encoding="utf-8")
    written = [out, *(made.save_figures(figures) if figures is not None else [])]
    if as_json:
        print_json({"written": [str(path) for path in written], "charts": [chart.id for chart in made.charts]})
        return
    for path in written:
        typer.echo(f"wrote {path}")
