"""`sphynx place`: finds where the reduce cells of a design go."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli.design_options import Json
from sphynx.cli.output import print_json, print_table
from sphynx.cli.search import ResumeOption, SetOption, parse_settings, refuse_old_run
from sphynx.cli.train import DataSize, DeviceOption, resume_command
from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.search.placement.place import PlacementResult
    from sphynx.space.design import Design


def place(
    design: Annotated[Path, typer.Argument(help="A design.json, as `sphynx plan -o` writes it.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder; the new design.json goes there.")],
    data: Annotated[str, typer.Option("--data", help="digits, a name from `sphynx data ls`, or a path.")] = "",
    recipe: Annotated[str, typer.Option("--recipe", help="paper, fast, small, smoke, or a TOML file.")] = "paper",
    candidates: Annotated[
        str, typer.Option("--candidates", help="all: C(D, n) placements. paper: positions up to 2D/3.")
    ] = "all",
    reduce_cells: Annotated[int, typer.Option("--reduce-cells", min=1, help="n: how many reduce cells.")] = 2,
    settings: SetOption = None,
    exhaustive: Annotated[
        str, typer.Option("--exhaustive", help="Also train every placement with this training recipe.")
    ] = "",
    fixed: Annotated[bool, typer.Option("--fixed", help="No search: D/3 and 2D/3.")] = False,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    resume: ResumeOption = "never",
    device: DeviceOption = "auto",
    image_size: DataSize = None,
    as_json: Json = False,
) -> None:
    """Place the reduce cells (Algorithm 1): one network per placement, sampled by a distribution that is learned.

    Placements with more ReLUs than the given design, as odd sizes can have them, are left out; --fixed is refused then.

    Examples:

      sphynx place design.json --data digits --recipe smoke --candidates paper -o runs/place

      sphynx place design.json --data cifar100 --exhaustive fast -o runs/place

      sphynx place design.json --fixed -o runs/place
    """
    from sphynx.data.open import open_data
    from sphynx.design.retraining import retrainer
    from sphynx.report.verb_figures import draw_placement
    from sphynx.search.placement.algorithm import load_placement_recipe
    from sphynx.search.placement.candidates import placements, placements_within
    from sphynx.search.placement.place import place as run
    from sphynx.search.placement.place import with_exhaustive
    from sphynx.space.account import relu_count
    from sphynx.space.design import default_reduce_positions
    from sphynx.space.files import load_design
    from sphynx.train.processes import pick_device
    from sphynx.train.recipe import load_recipe

    start = load_design(design)
    relus = relu_count(start)
    if fixed:
        placed = dataclasses.replace(start, reduce_positions=default_reduce_positions(start.depth))
        _save_fixed(placed, relu_count(placed), relus, out, as_json)
        return
    if not data:
        raise InputError("a placement search needs data", remedy="Give --data, or --fixed for D/3 and 2D/3.")
    if candidates not in ("all", "paper"):
        raise InputError(f"{candidates!r} are no candidates", where="--candidates", remedy="Use all or paper.")
    chosen_recipe = load_placement_recipe(recipe, parse_settings(settings or []))
    trained_by = load_recipe(exhaustive) if exhaustive else None
    every_place = placements(start.depth, reduce_cells, candidates)  # type: ignore[arg-type]  # checked above
    places = placements_within(start, every_place, relus, f"the given design has {relus:,}")
    if len(places) < len(every_place):
        left_out = len(every_place) - len(places)
        typer.echo(
            f"left out {left_out} of {len(every_place)} placements: more ReLUs than {design} ({relus:,})", err=True
        )
    refuse_old_run(out, resume)
    images, chosen_device = open_data(data, image_size=image_size), pick_device(device)
    result = run(
        start, images, chosen_recipe, places, out, seed=seed, device=chosen_device, resume=resume_command(),
        quiet=as_json,
    )  # fmt: skip
    if trained_by is not None:
        epochs = trained_by.epochs
        retrain = retrainer(
            images, trained_by, out / "exhaustive", seed=seed, device=chosen_device, quiet=as_json,
            resume_command=resume_command(),
        )  # fmt: skip
        result = with_exhaustive(result, start, lambda placed: retrain(placed, epochs), out)
    draw_placement(result, out / "figures" / "placement.svg")
    if as_json:
        print_json(result.to_json())
    else:
        _print(result, out)


def _print(result: PlacementResult, out: Path) -> None:
    final, alone = result.beta_hat[-1], result.accuracy
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
        note=f"figure: {out / 'figures' / 'placement.svg'}",
    )


def _save_fixed(placed: Design, relus: int, given_relus: int, out: Path, as_json: bool) -> None:
    """Within the given design's ReLUs, as a search would."""
    from sphynx.space.files import save_design

    places = ", ".join(map(str, placed.reduce_positions))
    if relus > given_relus:
        raise InputError(
            f"with reduce cells at {places} the network has {relus:,} ReLUs, the given design has {given_relus:,}",
            where="--fixed",
            remedy="Let a search place them within it (--data), or plan for images whose size can be halved as often.",
        )
    out.mkdir(parents=True, exist_ok=True)
    save_design(placed, out / "design.json")
    if as_json:
        print_json({"best": list(placed.reduce_positions), "relus": relus, "given_relus": given_relus})
    else:
        typer.echo(f"reduce cells at {places}: {relus:,} ReLUs (before: {given_relus:,}), {out / 'design.json'}")
