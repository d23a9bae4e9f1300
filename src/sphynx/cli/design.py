"""`sphynx design`: from a data set and a ReLU budget to a trained network, and an honest table beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sphynx.cli.options import Images, Output
from sphynx.cli.output import count, print_json, print_table, short
from sphynx.cli.plan_table import print_plans
from sphynx.cli.ranking_table import print_ranking
from sphynx.cli.record_flags import with_record_flags
from sphynx.cli.wording import with_flags
from sphynx.config import setting
from sphynx.design.settings import DesignSettings

if TYPE_CHECKING:
    from sphynx.design.pipeline import Pipeline
    from sphynx.design.results import DesignResult
    from sphynx.design.time_budget import Estimate
    from sphynx.run.progress import Voice

_OUT = setting(None, "The run folder. [default: runs/DATA-BUDGET]")


@with_record_flags
def design(
    context: typer.Context,
    images: Images,
    settings: Annotated[DesignSettings, {"out": _OUT}],
    output: Output,
) -> None:
    """Design a network for a data set: plan, cells, placement of the reduce cells, training, and a comparison.

    The published cells are used unless a strategy searches for others. Found cells are ranked together with the
    published and some random ones: each is trained briefly on part of the training images, and the best on the rest are
    used. With fewer than 1,000 training images the rest is too small for a choice, and nothing is searched unless
    --random-cells is given. Many random cells are ranked in rounds, all of them briefly and the better third for
    longer: a random search by itself. The final table compares the network with the same plan using random and
    published cells, trained with the same recipe from as many seeds.

    Examples:

      sphynx design --data digits --relu-budget 1k

      sphynx design --data digits --relu-budget 1k --strategy gaea --seeds 3 -o runs/digits

      sphynx design --data cifar100 --relu-budget 50k --time-budget 30m -o runs/cifar

      sphynx design --data photos/ --image-size 32 --relu-budget 25k --reduce-at 0,1 --compare none

      sphynx design --data digits --relu-budget 1k --strategy gaea --seeds 3 -o runs/digits --resume
    """
    from sphynx.api.designing import open_pipeline
    from sphynx.design.ordering import Order

    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(images.data).name)
    out = Path(settings.out or Path("runs") / f"{name}-{settings.relu_budget}")
    voice, began = output.voice, dict[str, Any]()
    order = Order(replace(settings, out=out, progress=voice))
    with open_pipeline(images.open(voice), order) as pipeline:
        notes = [with_flags(note, context) for note in order.notes]
        if output.as_json:
            estimates = [{**estimate.to_json(), "seconds": estimate.seconds} for estimate in pipeline.schedule()]
            began.update(notes=notes, estimates=estimates)
        else:
            _print_start(pipeline, notes, voice)
        result = pipeline.run()
    if output.as_json:
        print_json({"out": str(out), **began, **result.to_json()})
    else:
        _print_result(result, out)


def _print_start(pipeline: Pipeline, notes: Sequence[str], voice: Voice) -> None:
    for note in notes:
        typer.echo(note)
    request, outline = pipeline.request, pipeline.outline
    placed = None if request.placement in ("search", "fixed") else outline.design
    print_plans(outline.plans, request.relu_budget, request.tolerance, placed)
    if not pipeline.stages.finished("estimate"):  # a minute of silence on two cores at 25.6K ReLUs
        voice.say("timing a few steps of each stage on this device ...", stage="estimate")
    _print_schedule(pipeline)


def _print_schedule(pipeline: Pipeline) -> None:
    from sphynx.run.progress import duration

    request, estimates = pipeline.request, pipeline.schedule()
    asked = {"cells": request.search.epochs, "placement": request.placing.epochs, "training": request.training.epochs}
    asked["ranking"] = pipeline.forecast.ranking.epochs
    asked["comparison"] = request.comparison.epochs if request.comparison is not None else 0
    total = duration(sum(estimate.seconds for estimate in estimates))
    expensive = "; cells not found yet are counted as if every edge were a convolution" if request.strategy else ""
    note = f"about {total} in total, from steps timed on this device{expensive}"
    if request.time_budget is not None:
        shortened = any(estimate.epochs < asked[estimate.stage] for estimate in estimates)
        note += f"; {'epochs scaled to fit' if shortened else 'fits'} the budget of {duration(request.time_budget)}"
    print_table(
        "Estimate",
        ["stage", ">seconds per epoch", ">epochs", ">runs", ">time"],
        (_schedule_row(estimate, asked[estimate.stage]) for estimate in estimates),
        note=note,
    )


def _schedule_row(estimate: Estimate, asked: int) -> list[str]:
    from sphynx.run.progress import duration

    epochs, runs = (", ".join(str(getattr(one, name)) for one in estimate.rounds) for name in ("epochs", "runs"))
    if estimate.epochs != asked:
        epochs += f" (of {asked})"
    return [estimate.stage, f"{estimate.epoch_seconds:.3g}", epochs, runs, duration(estimate.seconds)]


def _print_result(result: DesignResult, out: Path) -> None:
    n, compared = len(result.seeds), result.comparison
    if result.ranking:
        print_ranking(
            "Cells, ranked by short trainings on held-out training images",
            [(entry.cells, [(one.epochs, one.held_out) for one in entry.trainings]) for entry in result.ranking],
        )
    if compared.recipe is not None:
        searched = "the search" if result.cells.startswith("searched") else f"these ({result.cells})"
        gains = "\n".join(f"{searched} {one}" for one in compared.gains)
        print_table(
            f"Test accuracy at the final epoch ({compared.recipe.epochs}), n = {n}, C={result.channels}, "
            f"D={result.depth}, {count(result.relus)} ReLUs, reduce cells at {list(result.reduce_positions)}",
            ["cells", ">mean", ">std", ">each seed", ">parameters", ">minutes"],
            (
                [
                    row.cells,
                    f"{row.mean:.2%}",
                    "-" if row.deviation is None else f"{row.deviation:.2%}",
                    " ".join(f"{100 * accuracy:.2f}" for accuracy in row.accuracies),
                    short(row.parameters),
                    f"{row.minutes:.2f}",
                ]
                for row in compared.rows
            ),
            note=f"{gains}\nAll use the placement found for the first; random cells are drawn again for each seed.",
        )
    spread = "" if result.accuracy_std is None else f", std {result.accuracy_std:.2%}"
    print_table(
        f"Designed: {out}",
        ["stage", ">minutes"],
        [[stage, f"{minutes:.2f}"] for stage, minutes in result.minutes.items()],
        note=f"{sum(result.minutes.values()):.2f} minutes in all; test accuracy {result.accuracy:.2%}{spread}, n = {n}",
    )
