"""`python -m reproduction`: the paper's experiments, kept runs, and the page that compares them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from reproduction.cli import run_experiment
from sphynx.cli.group import VerbGroup
from sphynx.cli.main import call

RESULTS = Path(__file__).parents[1] / "results"

app = typer.Typer(
    cls=VerbGroup,
    name="reproduction",
    help="The paper's experiments beside ours.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("run")(run_experiment)


@app.command()
def keep(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of run folders.")],
    to: Annotated[Path, typer.Option("--to", help="The folder of results.")] = RESULTS,
) -> None:
    """Keep finished trainings, searches, placements and reductions as files under results/, for `page`."""
    from reproduction.gpu.state import unpacked
    from reproduction.keeping import keep as keep_run
    from reproduction.keeping import runs_below
    from reproduction.kept_reductions import holds_reductions, keep_reductions

    for given in runs:
        with unpacked(given) as path:
            files = (
                keep_reductions(path, to) if holds_reductions(path) else [keep_run(run, to) for run in runs_below(path)]
            )
        typer.echo("\n".join(map(str, files)))


@app.command()
def page(
    name: Annotated[
        Literal["paper", "reduce", "figure"], typer.Argument(help="Which page, or the figure of both.")
    ] = "paper",
) -> None:
    """Print docs/results/paper.md, every experiment beside our kept runs and a verdict on each claim; docs/results/
    reduce.md, every reduction beside published ones; or docs/images/reduced.svg, which shows both."""
    if name == "paper":
        from reproduction.page import make_page

        typer.echo(make_page(RESULTS), nl=False)
    elif name == "reduce":
        from reproduction.reduction_page import make_reduction_page

        typer.echo(make_reduction_page(RESULTS), nl=False)
    else:
        from reproduction.reduction_figure import draw_reductions

        typer.echo(draw_reductions(RESULTS).to_svg(), nl=False)


def command_again() -> str:
    """Return the command that was given: what is finished is not run again."""
    return shlex.join(["python", "-m", "reproduction", *sys.argv[1:]])


if __name__ == "__main__":
    call(app, command_again)
