"""`sphynx search`: finds normal and reduce cells for a data set."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import print_json, print_table
from sphynx.cli.ranking_table import print_ranking
from sphynx.errors import InputError
from sphynx.search.choices import SupernetForm
from sphynx.train.recipe import AUTO

if TYPE_CHECKING:
    from sphynx.search.seeds import SearchSummary
    from sphynx.space.cell import Cell
    from sphynx.space.genotype import Genotype


def search(
    data: opt.DataOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")],
    strategy: opt.StrategyOption = "gaea",
    recipe: opt.RecipeOption = AUTO,
    nodes: Annotated[int | None, typer.Option("--nodes", help="N: 7 has four intermediate nodes, 5 has two.")] = None,
    reduce_at: Annotated[
        str | None,
        typer.Option("--reduce-at", help="Reduce positions of the supernet, such as 0,1. [default: the recipe's]"),
    ] = None,
    supernet: Annotated[
        SupernetForm | None,
        typer.Option(
            "--supernet", help="The supernet of the paper's text or of its released code. [default: the recipe's]"
        ),
    ] = None,
    settings: opt.SetOption = None,
    seed: opt.Seed = 0,
    seeds: opt.Seeds = 1,
    rank_recipe: Annotated[
        str, typer.Option("--rank", help="Rank the found cells by retraining with this training recipe.")
    ] = "",
    random_cells: Annotated[
        int, typer.Option("--random-cells", min=0, help="With --rank: number of random cells to rank as well.")
    ] = 0,
    rank_with: Annotated[
        list[str] | None,
        typer.Option(
            "--rank-with",
            help="With --rank: cells to rank as well, a published genotype's name or a file. May be repeated.",
        ),
    ] = None,
    prices: Annotated[
        list[str] | None, typer.Option("--cost", help="The price of an operation, such as conv5=2.5. May be repeated.")
    ] = None,
    price_weight: Annotated[float, typer.Option("--cost-weight", help="Weight of the prices in the objective.")] = 0.0,
    resume: opt.ResumeOption = "never",
    ray: opt.RayOption = "",
    device: opt.DeviceOption = "auto",
    image_size: opt.DataSize = None,
    skip_bad: opt.SkipBad = False,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Search for cells. Weights learn from one half of the training images, the architecture from the other.

    Examples:

      sphynx search --data digits --strategy darts --recipe smoke -o runs/cells

      sphynx search --data cifar100 --strategy pc-darts --seeds 4 --rank fast --random-cells 4 -o runs/cells

      sphynx search --data cifar100 --set hessian=true --set selection='"perturbation"' -o runs/robust

      sphynx search --data cifar100 --cost conv5=2.8 --cost conv3=1 --cost-weight 0.1 -o runs/cheap
    """
    from sphynx.api.searching import search_cells
    from sphynx.search.recipe import load_recipe
    from sphynx.train.recipe import load_recipe as load_training_recipe

    values = opt.parse_settings(settings)
    if nodes is not None:
        values["nodes"] = nodes
    if reduce_at is not None:
        values["reduce_at"] = opt.parse_positions(reduce_at)
    if supernet is not None:
        values["supernet"] = supernet
    # What is wrong with these is told before the data are read, which can take long.
    if recipe != AUTO:
        load_recipe(recipe, values)
    if rank_recipe:
        load_training_recipe(rank_recipe)
    priced = _prices(prices)
    voice = opt.voice_for(verbose, quiet, as_json)
    images = opt.open_images(data, image_size, skip_bad, voice)
    summary = search_cells(
        images,
        out,
        strategy=strategy,
        recipe=recipe,
        settings=values,
        seed=seed,
        seeds=seeds,
        rank_recipe=rank_recipe,
        random_cells=random_cells,
        rank_with=rank_with or (),
        prices=priced,
        price_weight=price_weight,
        resume=resume == "auto",
        device=device,
        progress=voice,
        ray=ray,
    )
    if as_json:
        print_json(summary.to_json())
    else:
        _print(summary, out)


def _prices(pairs: list[str] | None) -> dict[str, float]:
    values = opt.parse_settings(pairs, "--cost", "conv5=2.5")
    wrong = [name for name, value in values.items() if isinstance(value, bool) or not isinstance(value, int | float)]
    if wrong:
        raise InputError(f"{', '.join(wrong)}: the number is missing", where="--cost", remedy="Write it as conv5=2.5.")
    return {name: float(value) for name, value in values.items()}


def _print(summary: SearchSummary, out: Path) -> None:
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
