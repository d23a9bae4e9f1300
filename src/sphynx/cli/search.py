"""`sphynx search`: finds normal and reduce cells for a data set."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sphynx.cli.design_options import Json, cells_for, parse_positions
from sphynx.cli.output import print_json, print_table
from sphynx.cli.ranking_table import print_ranking
from sphynx.cli.train import DataSize, DeviceOption, resume_command
from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.data.images import Data
    from sphynx.search.ranking import Ranked
    from sphynx.search.recipe import SearchRecipe
    from sphynx.search.seeds import Summary
    from sphynx.space.cell import Cell
    from sphynx.space.genotype import Genotype

SetOption = Annotated[
    list[str] | None, typer.Option("--set", help="A value of the recipe, such as epochs=10. May be repeated.")
]
ResumeOption = Annotated[str, typer.Option("--resume", help="auto continues what the folder holds; never.")]


def search(
    data: Annotated[str, typer.Option("--data", help="digits, a name from `sphynx data ls`, or a path.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")],
    strategy: Annotated[
        str, typer.Option("--strategy", help="darts, darts-2nd, pc-darts, gdas, gaea, enas or random.")
    ] = "darts",
    recipe: Annotated[str, typer.Option("--recipe", help="paper, fast, small, smoke, or a TOML file.")] = "paper",
    nodes: Annotated[int | None, typer.Option("--nodes", help="N: 7 has four intermediate nodes, 5 has two.")] = None,
    reduce_at: Annotated[
        str | None, typer.Option("--reduce-at", help="Reduce positions of the supernet, as 0,1. Default: the recipe's.")
    ] = None,
    settings: SetOption = None,
    seed: Annotated[int, typer.Option("--seed", help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds: the spread is given.")] = 1,
    rank: Annotated[
        str, typer.Option("--rank", help="Rank the found cells by retraining with this training recipe.")
    ] = "",
    random_cells: Annotated[int, typer.Option("--random-cells", min=0, help="With --rank: random cells beside.")] = 0,
    beside: Annotated[
        list[str] | None,
        typer.Option("--beside", help="With --rank: a published genotype's name or a file. May be repeated."),
    ] = None,
    cost: Annotated[
        list[str] | None, typer.Option("--cost", help="The price of an operation, such as conv5=2.5. May be repeated.")
    ] = None,
    cost_weight: Annotated[float, typer.Option("--cost-weight", help="How much the prices count.")] = 0.0,
    resume: ResumeOption = "never",
    device: DeviceOption = "auto",
    image_size: DataSize = None,
    as_json: Json = False,
) -> None:
    """Search cells. Weights learn from one half of the training images, the architecture from the other.

    Examples:

      sphynx search --data digits --strategy darts --recipe smoke -o runs/cells

      sphynx search --data cifar100 --strategy pc-darts --seeds 4 --rank fast --random-cells 4 -o runs/cells

      sphynx search --data cifar100 --set hessian=true --set selection='"perturbation"' -o runs/robust

      sphynx search --data cifar100 --cost conv5=2.8 --cost conv3=1 --cost-weight 0.1 -o runs/cheap
    """
    from sphynx.data.open import open_data
    from sphynx.search.objective import Objective
    from sphynx.search.ranking import random_cells as draw_cells
    from sphynx.search.recipe import load_recipe
    from sphynx.search.search import SearchResult, search_cells
    from sphynx.search.seeds import search_seeds
    from sphynx.search.supernet.cellspace import CellSpace
    from sphynx.train.processes import pick_device

    values = parse_settings(settings or [])
    if nodes is not None:
        values["nodes"] = nodes
    if reduce_at is not None:
        values["reduce_at"] = parse_positions(reduce_at)
    chosen_recipe = load_recipe(recipe, values)
    if (random_cells or beside) and not rank:
        raise InputError("nothing is ranked", where="--random-cells, --beside", remedy="Give --rank fast, or neither.")
    drawn = draw_cells(CellSpace(chosen_recipe.nodes), random_cells, seed)
    named = _named_cells(beside or [], chosen_recipe.nodes)
    objective = Objective(operation_costs=_prices(cost or []), cost_weight=cost_weight)
    refuse_old_run(out, resume)
    images, chosen_device = open_data(data, image_size=image_size), pick_device(device)

    def one(number: int, folder: Path) -> SearchResult:
        return search_cells(
            images, strategy, chosen_recipe, folder, seed=number, device=chosen_device, objective=objective,
            resume=resume_command(), quiet=as_json,
        )  # fmt: skip

    ranking = None
    if rank:
        ranking = _ranking(
            images, chosen_recipe, rank, out, seed=seed, device=chosen_device, quiet=as_json,
            resume_command=resume_command(),
        )  # fmt: skip
    summary = search_seeds(
        one, out, range(seed, seed + seeds), rank=ranking, beside=named, drawn=drawn, drawn_may_win=strategy == "random"
    )  # fmt: skip
    if as_json:
        print_json(summary.to_json())
    else:
        _print(summary, out)


def parse_settings(pairs: list[str]) -> dict[str, Any]:
    """name=value, the value written as in TOML; a word needs no quotes."""
    values: dict[str, Any] = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise InputError(f"{pair!r} is not a setting", where="--set", remedy="Write it as epochs=10.")
        try:
            values[name.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[name.strip()] = text.strip()
    return values


def refuse_old_run(out: Path, resume: str) -> None:
    if resume not in ("auto", "never"):
        raise InputError(f"{resume!r} is no way to resume", where="--resume", remedy="Use auto or never.")
    if resume == "never" and any(out.glob("**/checkpoint.pt")):
        raise InputError("the folder holds a run", where=str(out), remedy="Give --resume auto, or another --out.")


def _prices(pairs: list[str]) -> dict[str, float]:
    values = parse_settings(pairs)
    wrong = [name for name, value in values.items() if isinstance(value, bool) or not isinstance(value, int | float)]
    if wrong:
        raise InputError(f"no number for {', '.join(wrong)}", where="--cost", remedy="Write it as conv5=2.5.")
    return {name: float(value) for name, value in values.items()}


def _named_cells(choices: list[str], nodes: int) -> dict[str, Genotype]:
    """By the name or path that was given. With other nodes a network would have other ReLUs."""
    named = {choice: cells_for(choice) for choice in choices}
    for choice, genotype in named.items():
        if genotype.nodes != nodes:
            raise InputError(
                f"these cells have N={genotype.nodes}, the search has {nodes}", where=f"--beside {choice}",
                remedy=f"Search with --nodes {genotype.nodes}, or leave them out.",
            )  # fmt: skip
    return named


def _ranking(
    data: Data, recipe: SearchRecipe, training: str, out: Path, **where: Any
) -> Callable[[Mapping[str, Genotype], Mapping[str, Genotype]], tuple[Ranked, ...]]:
    """Networks as deep and wide as the supernet, which reduce where it does."""
    from sphynx.design.retraining import retrainer
    from sphynx.search.ranking import rank as rank_cells
    from sphynx.space.design import Design
    from sphynx.space.tally import Shape
    from sphynx.train.recipe import load_recipe

    trained_by = load_recipe(training)
    train = retrainer(data, trained_by, out / "rank", **where)

    def retrain(genotype: Genotype, epochs: int) -> float:
        design = Design(
            genotype, recipe.channels, recipe.depth, recipe.reduce_positions, Shape(*data.train.shape), data.classes,
            conv_stack=recipe.conv_stack,
        )  # fmt: skip
        return train(design, epochs)

    return partial(rank_cells, retrain=retrain, epochs=trained_by.epochs)


def _print(summary: Summary, out: Path) -> None:
    deviation, agreement = summary.spread.deviation, summary.spread.agreement
    print_table(
        "Searches",
        ["strategy", ">seed", ">epochs", ">held-out accuracy of the supernet", "stopped by"],
        (
            [r.strategy, str(r.seed), str(r.epochs), f"{r.held_out_accuracy:.2%}", r.stopped or "-"]
            for r in summary.results
        ),
        note=f"mean {summary.spread.mean:.2%}, std {deviation:.2%}; two seeds' cells share {agreement:.0%} of edges"
        if deviation is not None and agreement is not None
        else "",
    )
    if summary.ranking:
        print_ranking(
            "Ranking by retraining, on held-out training images",
            [(entry.label, [(one.epochs, one.accuracy) for one in entry.trainings]) for entry in summary.ranking],
        )
    print_table(
        f"Cells: {out / 'genotype.json'}",
        [">node", "normal", "reduce"],
        (
            [str(node), normal, reduce]
            for node, (normal, reduce) in enumerate(
                zip(_edges(summary.chosen.normal), _edges(summary.chosen.reduce), strict=True), start=2
            )
        ),
        note=_collapse(summary.chosen),
    )


def _collapse(genotype: Genotype) -> str:
    from sphynx.search.stopping import cells_without_convolution

    without = cells_without_convolution(genotype)
    if not without:
        return ""
    return (
        f"no convolution in the {' and the '.join(without)} cell: the search collapsed. Try --strategy gaea, "
        "--set warmup=0.25 or --set selection=perturbation, and compare with --rank fast --random-cells 3."
    )


def _edges(cell: Cell) -> list[str]:
    return [", ".join(f"{edge.operation} {edge.source}" for edge in pair) for pair in cell]
