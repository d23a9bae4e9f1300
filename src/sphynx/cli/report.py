"""`sphynx report`: one HTML page, and figures as files, from runs, results and benchmarks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.live import follow
from sphynx.cli.output import print_json
from sphynx.cli.output_files import out_file
from sphynx.cli.wording import with_flags
from sphynx.errors import InputError


def report(
    context: typer.Context,
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Your network first: a run folder, a compiled one, or a model's name. Then runs to compare it with, "
            "results files, JSON output of `bench` and `check`."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The page. [default: report.html; none with --live]", callback=out_file),
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Show one run in the terminal as it runs; only its folder is read.")
    ] = False,
    every: Annotated[
        float, typer.Option("--every", min=0, help="With --live: seconds between updates; 0 shows it once.")
    ] = 2.0,
    figures: Annotated[
        Path | None, typer.Option("--figures", help="Also write every figure to this folder, as SVG and PNG.")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="The page's title.")] = "Sphynx report",
    compiled: Annotated[
        Path | None,
        typer.Option("--compiled", help="The compiled network. [default: compiled/NAME beside runs/NAME]"),
    ] = None,
    data: opt.KnownData = "",
    image_size: opt.DataSize = None,
    stream: opt.KnownStream = None,
    skip_bad: opt.SkipBad = False,
    ask: Annotated[int, typer.Option("--ask", min=0, max=100, help="Test images to ask about privately.")] = 6,
    examine: Annotated[
        bool,
        typer.Option(
            "--examine/--no-examine", help="Evaluate your network and ask it privately for the page; needs its data."
        ),
    ] = True,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Make one self-contained page: your network in one card, how it is built, curves, comparison, private inference.

    The page is about the first input; others are for comparison. Benchmarks and checks in its folder or next to
    it are included. What an input does not contain is left out. Results from other machines or versions are labelled.

    With --live: how far a run is, time left, curves, cells of a search as they change, in the terminal and, with -o, on
    a page that the browser reloads. It ends with the run or Ctrl-C, and can be started again at any time.

    Examples:

      sphynx report runs/digits -o report.html

      sphynx report compiled/mine -o report.html

      sphynx report runs/cells --live -o live.html

      sphynx report sphynx-cifar100-25k results/cifar100 private.json -o report.html --figures figures/

      sphynx check compiled/ --data cifar100 --json > ranges.json; sphynx report runs/paper ranges.json -o report.html
    """
    if live:
        _follow(context, runs, out, every)
        return
    from sphynx.api.summarising import summarise
    from sphynx.report.page import make_report
    from sphynx.report.sources import add_beside, read_sources
    from sphynx.run.environment import describe_environment
    from sphynx.run.work import pick_device

    out = out or Path("report.html")
    voice = opt.voice_for(verbose, quiet, as_json)
    sources = read_sources(runs)
    for file in add_beside(runs, sources):
        voice.say(f"found {file}", stage="report")
    summary = None
    if examine:
        summary = summarise(
            runs,
            sources,
            compiled=compiled,
            data=data,
            image_size=image_size,
            stream=stream,
            skip_bad=skip_bad,
            ask=ask,
            progress=voice.report,
        )
    if summary is not None:
        summary = replace(summary, missing=tuple(with_flags(why, context) for why in summary.missing))
    made = make_report(sources, describe_environment(pick_device("auto")), title=title, summary=summary)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(made.html, encoding="utf-8")
    written = [out, *(made.save_figures(figures) if figures is not None else [])]
    if as_json:
        print_json({"written": [str(path) for path in written], "charts": [chart.id for chart in made.charts]})
        return
    for path in written:
        typer.echo(f"wrote {path}")


def _follow(context: typer.Context, runs: list[Path], page: Path | None, every_s: float) -> None:
    idle = [flag.name for flag in context.command.params if flag.name not in ("runs", "out", "live", "every")]
    opt.refuse_idle(context, [name for name in idle if name], "no effect with --live")
    if len(runs) != 1:
        raise InputError("only one run can be shown as it runs", where="RUNS", remedy="Give one run folder.")
    follow(runs[0], page, every_s)
