"""`sphynx place`: finds where the reduce cells of a design go."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import print_json, print_table
from sphynx.errors import InputError
from sphynx.search.choices import Estimator
from sphynx.train.recipe import AUTO

if TYPE_CHECKING:
    from sphynx.search.placement.place import PlacementResult
    from sphynx.space.design import Design


_OF_A_SEARCH = (
    *("data", "recipe", "candidates", "reduce_cells", "estimator", "exhaustive"),
    *("seed", "resume", "ray", "device", "image_size", "skip_bad"),
)


def place(
    context: typer.Context,
    design: Annotated[Path, typer.Argument(help="A design.json, as `sphynx plan -o` writes it.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder; the new design.json goes there.")],
    data: opt.DataOption = "",
    recipe: opt.RecipeOption = AUTO,
    candidates: opt.CandidatesOption = "paper",
    reduce_cells: Annotated[int, typer.Option("--reduce-cells", min=1, help="n, the number of reduce cells.")] = 2,
    estimator: Annotated[
        Estimator | None,
        typer.Option(
            "--estimator",
            help="How the distribution is learned: as the paper prints it, as its code does, or from the losses.",
        ),
    ] = None,
    settings: opt.SetOption = None,
    exhaustive: Annotated[
        str, typer.Option("--exhaustive", help="Also train every placement with this training recipe.")
    ] = "",
    fixed: Annotated[bool, typer.Option("--fixed", help="Do not search: place them at D/3 and 2D/3.")] = False,
    seed: opt.Seed = 0,
    resume: opt.ResumeOption = "never",
    ray: opt.RayOption = "",
    device: opt.DeviceOption = "auto",
    image_size: opt.DataSize = None,
    skip_bad: opt.SkipBad = False,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Place the reduce cells (Algorithm 1): one network per placement, sampled by a distribution that is learned.

    Placements with more ReLUs than the given design (possible with odd image sizes) are left out. --fixed is refused
    if its placement is one of them.

    Examples:

      sphynx place design.json --data digits --recipe smoke --candidates paper -o runs/place

      sphynx place design.json --data cifar100 --exhaustive fast -o runs/place

      sphynx place design.json --fixed -o runs/place
    """
    from sphynx.api.searching import place_reduce_cells
    from sphynx.report.verb_figures import draw_placement
    from sphynx.search.placement.recipe import load_placement_recipe
    from sphynx.space.artifact import refuse_trained
    from sphynx.space.design import Design, default_reduce_positions

    refuse_trained(design)
    start = Design.load(design)
    if fixed:
        opt.refuse_idle(context, (*_OF_A_SEARCH, "settings"), "nothing is searched or trained with --fixed")
        placed = dataclasses.replace(start, reduce_positions=default_reduce_positions(start.depth))
        _save_fixed(placed, placed.relus, start.relus, out, as_json)
        return
    if not data:
        raise InputError("a placement search needs data", remedy="Give --data, or --fixed for D/3 and 2D/3.")
    values = opt.parse_settings(settings)
    if estimator is not None:
        values["estimator"] = estimator
    if recipe != AUTO:
        load_placement_recipe(recipe, values)  # its faults are told before the data are read, which can take long
    voice = opt.voice_for(verbose, quiet, as_json)
    result = place_reduce_cells(
        start,
        opt.open_images(data, image_size, skip_bad, voice),
        out,
        recipe=recipe,
        candidates=candidates,
        reduce_cells=reduce_cells,
        settings=values,
        exhaustive=exhaustive,
        seed=seed,
        resume=resume == "auto",
        device=device,
        progress=voice,
        ray=ray,
    )
    draw_placement(result, out / "figures" / "placement.svg")
    if as_json:
        print_json(result.to_json())
    else:
        _print(result, out)


def _print(result: PlacementResult, out: Path) -> None:
    from sphynx.search.placement.doubt import doubt

    final, alone = result.beta_hat[-1], result.accuracy
    why = doubt(result.placements, result.beta_hat)
    inconclusive = f"; inconclusive: {why}" if why else ""
    print_table(
        f"Placements: {out / 'design.json'}",
        ["reduce cells at", ">beta", ">held-out accuracy in the search", *([">trained alone"] if alone else [])],
        (
            [
                f"{place}{' <' if place == result.best else ''}",
                f"{final[number]:.4f}",
                f"{result.held_out_accuracy[number]:.2%}",
                *([f"{alone[number]:.2%}"] if alone else []),
            ]
            for number, place in enumerate(result.placements)
        ),
        note=f"figure: {out / 'figures' / 'placement.svg'}{inconclusive}",
    )


def _save_fixed(placed: Design, relus: int, given_relus: int, out: Path, as_json: bool) -> None:
    """Within the given design's ReLUs, as a search would."""
    from sphynx.space.files import save_design

    places = ", ".join(map(str, placed.reduce_positions))
    if relus > given_relus:
        raise InputError(
            f"with reduce cells at {places} the network has {relus:,} ReLUs, the given design has {given_relus:,}",
            where="--fixed",
            remedy="Let a search find positions that fit (--data), or plan for images that can be halved that often.",
        )
    out.mkdir(parents=True, exist_ok=True)
    save_design(placed, out / "design.json")
    if as_json:
        print_json({"best": list(placed.reduce_positions), "relus": relus, "given_relus": given_relus})
    else:
        typer.echo(f"reduce cells at {places}: {relus:,} ReLUs (before: {given_relus:,}), {out / 'design.json'}")
