"""`sphynx design`: from a data set and a ReLU budget to a trained network, and an honest table beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import count, print_json, print_table, short
from sphynx.cli.plan_table import print_plans
from sphynx.cli.ranking_table import print_ranking
from sphynx.cli.wording import with_flags
from sphynx.errors import InputError
from sphynx.train.recipe import AUTO

if TYPE_CHECKING:
    from sphynx.design.ordering import Places
    from sphynx.design.pipeline import Pipeline
    from sphynx.design.results import DesignResult
    from sphynx.design.time_budget import Estimate


def design(
    context: typer.Context,
    data: opt.DataOption,
    relu_budget: Annotated[str, typer.Option("--relu-budget", help="50k, 1.2M or 51200.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder. [default: runs/DATA-BUDGET]")] = None,
    search: Annotated[
        bool, typer.Option("--search", help="Search for cells instead of using the published ones.")
    ] = False,
    strategy: opt.StrategyOption = "gaea",
    random_cells: Annotated[
        int | None,
        typer.Option(
            "--random-cells", min=0, help="Random cells to rank against the found ones in short trainings. [default: 3]"
        ),
    ] = None,
    cells: opt.CellsOption = "sphynx",
    fixed: Annotated[bool, typer.Option("--fixed", help="Reduce cells at D/3 and 2D/3, without a search.")] = False,
    reduce_at: opt.ReduceAt = "",
    reduce_cells: Annotated[
        int | None,
        typer.Option(
            "--reduce-cells",
            min=1,
            help="How many reduce cells to place. [default: 3 from 32 pixels on unless they are too wide, otherwise 2]",
        ),
    ] = None,
    candidates: opt.CandidatesOption = "paper",
    recipe: opt.RecipeOption = AUTO,
    compare: Annotated[
        str, typer.Option("--compare", help="The recipe of the final table: same, none, or another (shorter) one.")
    ] = "same",
    search_recipe: Annotated[str, typer.Option("--search-recipe", help="Recipe of the cell search.")] = AUTO,
    placement_recipe: Annotated[str, typer.Option("--placement-recipe", help="Recipe of the placement.")] = AUTO,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A value of a stage's recipe: cells.epochs=4, placement.*, training.*."),
    ] = None,
    time_budget: Annotated[
        str, typer.Option("--time-budget", help="Scale the epochs to fit a time such as 90s, 15m or 2h.")
    ] = "",
    seed: opt.Seed = 0,
    seeds: opt.Seeds = 1,
    tolerance: Annotated[str, typer.Option("--tolerance", help="Allowed deviation from the budget.")] = "5%",
    stem: opt.StemOption = "auto",
    conv_stack: opt.ConvStackOption = "single",
    resume: opt.ResumeOption = "never",
    ray: opt.RayOption = "",
    device: opt.DeviceOption = AUTO,
    image_size: opt.DataSize = None,
    skip_bad: opt.SkipBad = False,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Design a network for a data set: plan, cells, placement of the reduce cells, training, and a comparison.

    The published cells are used unless --search is given. Found cells are ranked together with the published and some
    random ones: each is trained briefly on part of the training images, and the best on the rest are used. With fewer
    than 1,000 training images that rest is too small to choose by, and nothing is searched unless --random-cells is
    given. Many random cells are ranked in rounds, all of them briefly and the better third for longer: a random search
    by itself. The final table compares the network with the same plan using random and published cells, trained with
    the same recipe from as many seeds.

    Examples:

      sphynx design --data digits --relu-budget 1k

      sphynx design --data digits --relu-budget 1k --search --seeds 3 -o runs/digits

      sphynx design --data cifar100 --relu-budget 50k --time-budget 30m -o runs/cifar

      sphynx design --data photos/ --image-size 32 --relu-budget 25k --reduce-at 0,1 --compare none

      sphynx design --data digits --relu-budget 1k --search --seeds 3 -o runs/digits --resume auto
    """
    from sphynx.api.designing import design_network
    from sphynx.space.planner import parse_relu_budget
    from sphynx.train.processes import pick_device

    if not search:
        opt.refuse_idle(
            context, ("strategy", "search_recipe"), "cells are searched only with --search", "Give --search"
        )
    out = out or Path("runs") / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', Path(data).name)}-{relu_budget}"
    voice, began = opt.voice_for(verbose, quiet, as_json), dict[str, Any]()
    # Faults of these are told before the data are read, which can take long.
    parse_relu_budget(relu_budget)
    places, overrides, _ = _places(fixed, reduce_at), opt.parse_settings(settings), pick_device(device)

    def started(pipeline: Pipeline, notes: Sequence[str]) -> None:
        if as_json:
            estimates = [{**estimate.to_json(), "seconds": estimate.seconds} for estimate in pipeline.schedule()]
            began.update(notes=[with_flags(note, context) for note in notes], estimates=estimates)
            return
        for note in notes:
            typer.echo(with_flags(note, context))
        request, outline = pipeline.request, pipeline.outline
        placed = None if request.placement in ("search", "fixed") else outline.design
        print_plans(outline.plans, request.relu_budget, request.tolerance, placed)
        if not pipeline.stages.finished("estimate"):  # a minute of silence on two cores at 25.6K ReLUs
            voice.say("timing a few steps of each stage on this device ...", stage="estimate")
        _print_schedule(pipeline)

    result = design_network(
        opt.open_images(data, image_size, skip_bad, voice),
        relu_budget,
        out,
        tolerance=tolerance,
        cells=cells,
        strategy=strategy if search else None,
        random_cells=random_cells,
        reduce_at=places,
        reduce_cells=reduce_cells,
        candidates=candidates,
        recipe=recipe,
        compare=compare,
        search_recipe=search_recipe,
        placement_recipe=placement_recipe,
        settings=overrides,
        seed=seed,
        seeds=seeds,
        time_budget=time_budget or None,
        stem=stem,
        conv_stack=conv_stack,
        resume=resume == "auto",
        device=device,
        progress=voice,
        started=started,
        ray=ray,
    )
    if as_json:
        print_json({"out": str(out), **began, **result.to_json()})
    else:
        _print_result(result, out)


def _places(fixed: bool, reduce_at: str) -> Places:
    if fixed and reduce_at:
        raise InputError("--fixed and --reduce-at exclude each other", remedy="Give --fixed or --reduce-at.")
    if reduce_at:
        return opt.parse_positions(reduce_at)
    return "fixed" if fixed else "search"


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
