"""Tables of `sphynx design`: the plan and what the stages will take, and what came of them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sphynx.cli.output import count, print_table, say_next
from sphynx.cli.plan_table import print_plans, print_streams
from sphynx.cli.ranking_table import print_ranking
from sphynx.units import duration, percent, short_number

if TYPE_CHECKING:
    from sphynx.design.pipeline import Pipeline
    from sphynx.design.results import DesignResult
    from sphynx.design.stream_pipeline import StreamPipeline
    from sphynx.design.stream_results import StreamDesignResult
    from sphynx.design.time_budget import Estimate
    from sphynx.run.progress import Voice


def print_start(pipeline: Pipeline | StreamPipeline, notes: Sequence[str], voice: Voice) -> None:
    from sphynx.design.stream_pipeline import StreamPipeline

    for note in notes:
        typer.echo(note)
    if isinstance(pipeline, StreamPipeline):
        print_streams(pipeline.plans)
    else:
        request, outline = pipeline.request, pipeline.outline
        placed = None if request.placement in ("search", "fixed") else outline.design
        print_plans(outline.plans, request.relu_budget, request.tolerance, placed)
    if not pipeline.stages.finished("estimate"):  # a minute of silence on two cores at 25.6K ReLUs
        voice.say("timing a few steps of each stage on this device ...", stage="estimate")
    _print_schedule(pipeline)


def _print_schedule(pipeline: Pipeline | StreamPipeline) -> None:

    request, estimates, asked = pipeline.request, pipeline.schedule(), _asked_epochs(pipeline)
    total = duration(sum(estimate.seconds for estimate in estimates))
    searches = getattr(request, "strategy", "")
    expensive = "; cells not found yet are counted as if every edge were a convolution" if searches else ""
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


def _asked_epochs(pipeline: Pipeline | StreamPipeline) -> dict[str, int]:
    """Tell the epochs of each stage's recipe, which a time budget may have scaled."""
    from sphynx.design.stream_pipeline import StreamPipeline

    if isinstance(pipeline, StreamPipeline):
        taught = pipeline.request
        asked = {"teacher": taught.teaching.epochs, "training": taught.training.epochs}
        asked["allocation"] = 0 if taught.allocating is None else taught.allocating.epochs
        return asked | {"views": min(taught.training.view_epochs, taught.training.epochs)}
    request = pipeline.request
    asked = {"cells": request.search.epochs, "placement": request.placing.epochs, "training": request.training.epochs}
    asked["ranking"] = pipeline.forecast.ranking.epochs
    asked["comparison"] = request.comparison.epochs if request.comparison is not None else 0
    return asked


def _schedule_row(estimate: Estimate, asked: int) -> list[str]:

    epochs, runs = (", ".join(str(getattr(one, name)) for one in estimate.rounds) for name in ("epochs", "runs"))
    if estimate.epochs != asked:
        epochs += f" (of {asked})"
    return [estimate.stage, f"{estimate.epoch_seconds:.3g}", epochs, runs, duration(estimate.seconds)]


def print_result(result: DesignResult | StreamDesignResult, out: Path) -> None:
    """Say first how good it is, which is what was asked for."""
    from sphynx.design.results import DesignResult

    n = len(result.seeds)
    spread = "" if result.accuracy_std is None else f", std {percent(result.accuracy_std)}"
    typer.echo(f"{percent(result.accuracy)} of the test images{spread}, n = {n}, {count(result.relus)} ReLUs: {out}")
    if isinstance(result, DesignResult):
        _print_cells(result)
    else:
        _print_stream(result)
    print_table(
        f"Designed: {out}",
        ["stage", ">minutes"],
        [[stage, f"{minutes:.2f}"] for stage, minutes in result.minutes.items()],
        note=f"{sum(result.minutes.values()):.2f} minutes in all",
    )
    say_next("sphynx", "compile", str(out), "-o", f"compiled/{out.name}")


def _print_stream(result: StreamDesignResult) -> None:
    """Say what the network is, and who taught it."""
    rows = [["stages", result.stages], ["ReLUs", count(result.relus)]]
    if result.planned != result.stages:
        rows.append([f"planned, before {result.allocated_by}", result.planned])
    for teacher in result.teachers:
        known = "" if teacher.accuracy is None else f", {percent(teacher.accuracy)} on the test images"
        rows.append(["teacher", f"{teacher.name}{known}"])
    rows += [
        [f"seed {seed}", percent(accuracy)] for seed, accuracy in zip(result.seeds, result.accuracies, strict=True)
    ]
    print_table(f"Stream network, test accuracy at the final epoch ({result.training.epochs})", ["", ""], rows)


def _print_cells(result: DesignResult) -> None:
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
                    percent(row.mean),
                    percent(row.deviation),
                    " ".join(f"{100 * accuracy:.2f}" for accuracy in row.accuracies),
                    short_number(row.parameters),
                    f"{row.minutes:.2f}",
                ]
                for row in compared.rows
            ),
            note=f"{gains}\nAll use the placement found for the first; random cells are drawn again for each seed.",
        )
