"""`sphynx design`: from a data set and a ReLU budget to a trained network, and an honest table beside it."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sphynx.cli.design_options import (
    Cells,
    ConvStack,
    Json,
    StemOption,
    cells_for,
    conv_stack_for,
    parse_positions,
    stem_for,
)
from sphynx.cli.output import count, print_json, print_table, short
from sphynx.cli.plan import print_plans
from sphynx.cli.ranking_table import print_ranking
from sphynx.cli.search import ResumeOption, parse_settings, refuse_old_run
from sphynx.cli.train import DataOption, DataSize, DeviceOption, resume_command
from sphynx.errors import InputError
from sphynx.train.recipe import AUTO

if TYPE_CHECKING:
    from sphynx.data.images import Data
    from sphynx.design.pipeline import Pipeline
    from sphynx.design.request import Request
    from sphynx.design.results import DesignResult
    from sphynx.design.timing import Estimate

RIVALS = 3


def design(
    data: DataOption,
    relu_budget: Annotated[str, typer.Option("--relu-budget", help="50k, 1.2M or 51200.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The run folder. [runs/DATA-BUDGET]")] = None,
    search: Annotated[bool, typer.Option("--search", help="Search the cells, instead of the published ones.")] = False,
    strategy: Annotated[
        str, typer.Option("--strategy", help="darts, darts-2nd, pc-darts, gdas, gaea, enas or random.")
    ] = "gaea",
    rivals: Annotated[
        int | None,
        typer.Option("--rivals", min=0, help="Random cells that found ones must beat in short trainings. [3]"),
    ] = None,
    cells: Cells = "sphynx",
    fixed: Annotated[bool, typer.Option("--fixed", help="Reduce cells at D/3 and 2D/3, without a search.")] = False,
    reduce_at: Annotated[str, typer.Option("--reduce-at", help="Reduce cells at these positions, such as 0,1.")] = "",
    reduce_cells: Annotated[
        int | None,
        typer.Option(
            "--reduce-cells",
            min=1,
            help="How many the search places. [3 from 32 pixels on, where they are not too wide; else 2]",
        ),
    ] = None,
    candidates: Annotated[
        str, typer.Option("--candidates", help="all: C(D, n) placements. paper: positions up to 2D/3.")
    ] = "paper",
    recipe: Annotated[str, typer.Option("--recipe", help="Of the training; auto suits it to the data.")] = AUTO,
    compare: Annotated[
        str, typer.Option("--compare", help="The recipe of the final table: same, none, or another (shorter) one.")
    ] = "same",
    search_recipe: Annotated[str, typer.Option("--search-recipe", help="Of the cell search.")] = AUTO,
    placement_recipe: Annotated[str, typer.Option("--placement-recipe", help="Of the placement.")] = AUTO,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", help="A value of a stage's recipe: cells.epochs=4, placement.*, training.*."),
    ] = None,
    time_budget: Annotated[str, typer.Option("--time-budget", help="Scale the epochs to fit 90s, 15m or 2h.")] = "",
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds are trained of every network.")] = 1,
    tolerance: Annotated[str, typer.Option("--tolerance", help="How far from the budget is allowed.")] = "5%",
    stem: StemOption = AUTO,
    conv_stack: ConvStack = "single",
    resume: ResumeOption = "never",
    device: DeviceOption = AUTO,
    image_size: DataSize = None,
    as_json: Json = False,
) -> None:
    """Design a network for a data set: plan, cells, placement of the reduce cells, training, and a comparison.

    The published cells are used unless --search is given. Found cells are then ranked beside the published and some
    random ones, by short trainings on part of the training images; the best on the rest are taken. Of fewer than 1,000
    training images that rest is too small to choose by, and nothing is searched unless --rivals is given. Many --rivals
    go in rounds, short trainings of all and longer ones of the better third, and are a random search by themselves. The
    table at the end sets the network beside the same plan with random and with published cells, trained by the same
    recipe from as many seeds.

    Examples:

      sphynx design --data digits --relu-budget 1k

      sphynx design --data digits --relu-budget 1k --search --seeds 3 -o runs/digits

      sphynx design --data cifar100 --relu-budget 50k --time-budget 30m -o runs/cifar

      sphynx design --data photos/ --image-size 32 --relu-budget 25k --reduce-at 0,1 --compare none

      sphynx design --data digits --relu-budget 1k --search --seeds 3 -o runs/digits --resume auto
    """
    from sphynx.data.open import open_data
    from sphynx.design.pipeline import Pipeline
    from sphynx.design.retraining import too_few_to_rank
    from sphynx.train.processes import pick_device

    out = out or Path("runs") / f"{re.sub(r'[^A-Za-z0-9._-]+', '-', Path(data).name)}-{relu_budget}"
    chosen_device = pick_device(device)
    refuse_old_run(out, resume)
    images = open_data(data, image_size=image_size)
    request = _request(
        images, relu_budget=relu_budget, tolerance=tolerance, stem=stem, conv_stack=conv_stack, cells=cells,
        strategy=strategy if search else "", rivals=_rivals(search, rivals),
        placement=_placement(fixed, reduce_at, reduce_cells), reduce_cells=reduce_cells, candidates=candidates,
        recipes=(search_recipe, placement_recipe, recipe, compare), settings=settings or [],
        seed=seed, seeds=seeds, time_budget=time_budget,
    )  # fmt: skip
    notes = []
    if search and rivals is None and too_few_to_rank(len(images.train)):
        request = dataclasses.replace(request, strategy="", rivals=0)
        notes.append(_why_no_search(len(images.train)))
    pipeline = Pipeline(
        request, images, out, device=chosen_device, resume=resume == "auto", resume_command=resume_command(),
        quiet=as_json,
    )  # fmt: skip
    if as_json:
        estimates = [{**estimate.to_json(), "seconds": estimate.seconds} for estimate in pipeline.schedule()]
        print_json({"out": str(out), "notes": notes, "estimates": estimates, **pipeline.run().to_json()})
        return
    for note in notes:
        typer.echo(note)
    print_plans(pipeline.outline.plans, pipeline.request.relu_budget, tolerance)
    if not pipeline.stages.finished("estimate"):  # a minute of silence on two cores at 25.6K ReLUs
        typer.echo("timing a few steps of each stage on this device ...", err=True)
    _print_schedule(pipeline)
    _print_result(pipeline.run(), out)


def _request(
    data: Data, *, relu_budget: str, tolerance: str, stem: str, conv_stack: str, cells: str, strategy: str,
    rivals: int, placement: Literal["search", "fixed"] | tuple[int, ...], reduce_cells: int | None, candidates: str,
    recipes: tuple[str, str, str, str], settings: list[str], seed: int, seeds: int, time_budget: str,
) -> Request:  # fmt: skip
    from sphynx.design.request import Request, placement_recipe, search_recipe, training_recipe
    from sphynx.design.timing import parse_duration
    from sphynx.search.strategies import STRATEGIES
    from sphynx.space.planner import parse_percentage, parse_relu_budget

    if strategy and strategy not in STRATEGIES:
        raise InputError(f"there is no strategy {strategy!r}", remedy=f"Use one of {', '.join(STRATEGIES)}.")
    if candidates not in ("all", "paper"):
        raise InputError(f"{candidates!r} are no candidates", where="--candidates", remedy="Use all or paper.")
    if strategy and cells != "sphynx":
        raise InputError("cells are both given and searched", remedy="Give --cells or --search.")
    changes = _by_stage(settings)
    if "reduce_at" in changes["cells"]:
        raise InputError(
            "the supernet reduces as its network will", where="--set cells.reduce_at",
            remedy="Give --reduce-at, or search by itself (sphynx search --reduce-at) and design with --cells FILE.",
        )  # fmt: skip
    search, placing, training, compare = recipes
    _, trained_by = training_recipe(training, changes["training"], data)
    compared_by = trained_by if compare == "same" else None
    if compare not in ("same", "none"):
        _, compared_by = training_recipe(compare, {}, data)
    return Request(
        relu_budget=parse_relu_budget(relu_budget),
        tolerance=parse_percentage(tolerance),
        stem=stem_for(stem, data.train.shape[1]),
        conv_stack=conv_stack_for(conv_stack),
        genotype=cells_for(cells),
        strategy=strategy,
        rivals=rivals,
        placement=placement,
        reduce_cells=reduce_cells,
        candidates=candidates,  # type: ignore[arg-type]  # checked above
        search=search_recipe(search, {**changes["cells"], "reduce_at": []}, data),  # the outline says where
        placing=placement_recipe(placing, changes["placement"], data),
        training=trained_by,
        comparison=compared_by,
        seed=seed,
        seeds=seeds,
        time_budget=parse_duration(time_budget) if time_budget else None,
    )


def _why_no_search(images: int) -> str:
    from sphynx.design.retraining import HELD_OUT

    return (
        f"No cells are searched: {images:,} training images are too few to choose by. Between cells that are ranked on "
        f"{images * HELD_OUT:.0f} of them chance decides, so the published ones are taken. --rivals {RIVALS} searches "
        "and ranks all the same, --rivals 0 takes what is found."
    )


def _rivals(search: bool, asked: int | None) -> int:
    if not search and asked is not None:
        raise InputError(
            "rivals are for cells that a search found", where="--rivals", remedy="Give --search, or leave it out."
        )
    return 0 if not search else RIVALS if asked is None else asked


def _placement(fixed: bool, reduce_at: str, reduce_cells: int | None) -> Literal["search", "fixed"] | tuple[int, ...]:
    if (fixed or reduce_at) and reduce_cells is not None:
        raise InputError(
            "the number of reduce cells is for the search that places them", where="--reduce-cells",
            remedy="Give --reduce-cells without --fixed and --reduce-at.",
        )  # fmt: skip
    if fixed and reduce_at:
        raise InputError("reduce cells are both fixed and given", remedy="Give --fixed or --reduce-at.")
    if reduce_at:
        return parse_positions(reduce_at)
    return "fixed" if fixed else "search"


def _by_stage(settings: list[str]) -> dict[str, dict[str, Any]]:
    stages: dict[str, dict[str, Any]] = {"cells": {}, "placement": {}, "training": {}}
    for name, value in parse_settings(settings).items():
        stage, dot, key = name.partition(".")
        if not dot or stage not in stages:
            raise InputError(
                f"{name!r} names no value of a stage", where="--set", remedy=f"Stages are {', '.join(stages)}."
            )
        stages[stage][key] = value
    return stages


def _print_schedule(pipeline: Pipeline) -> None:
    from sphynx.run.progress import duration

    request, estimates = pipeline.request, pipeline.schedule()
    asked = {"cells": request.search.epochs, "placement": request.placing.epochs, "training": request.training.epochs}
    asked["ranking"] = pipeline.forecast.ranking.epochs
    asked["comparison"] = request.comparison.epochs if request.comparison is not None else 0
    total = duration(sum(estimate.seconds for estimate in estimates))
    dear = "; cells still to be found: as if every edge convolved" if request.strategy else ""
    note = f"about {total} in all, by steps timed on this device{dear}"
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
            note=f"{gains}\nAll stand at the places found for the first; random cells are drawn anew for each seed.",
        )
    spread = "" if result.accuracy_std is None else f", std {result.accuracy_std:.2%}"
    print_table(
        f"Designed: {out}",
        ["stage", ">minutes"],
        [[stage, f"{minutes:.2f}"] for stage, minutes in result.minutes.items()],
        note=f"{sum(result.minutes.values()):.2f} minutes in all; test accuracy {result.accuracy:.2%}{spread}, n = {n}",
    )
