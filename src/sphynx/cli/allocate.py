"""`sphynx allocate`: finds how many rectified channels each block of a stream network gets of a budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli.design_options import Json
from sphynx.cli.output import count, print_json, print_table
from sphynx.cli.search import ResumeOption, SetOption, parse_settings, refuse_old_run
from sphynx.cli.train import DataOption, DataSize, DeviceOption, resume_command
from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.search.allocation.allocate import AllocationResult
    from sphynx.search.allocation.candidates import Budget
    from sphynx.space.stream import StreamDesign

METHODS = ("gumbel", "gates")


def allocate(
    design: Annotated[Path, typer.Argument(help="A stream's design.json: its stages, widths and number of blocks.")],
    data: DataOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder; the new design.json goes there.")],
    method: Annotated[
        str,
        typer.Option(
            "--method", help="gumbel: one network per candidate, sampled. gates: one wide network, channels closed."
        ),
    ] = "gumbel",
    relu_budget: Annotated[
        str, typer.Option("--relu-budget", help="25.6k or 25600. Default: as many as the design has.")
    ] = "",
    latency_budget: Annotated[
        str, typer.Option("--latency-budget", help="Instead: seconds online, such as 90ms, by --prices.")
    ] = "",
    prices: Annotated[
        Path | None, typer.Option("--prices", help="A table of `sphynx estimate DESIGN --prices FILE`.")
    ] = None,
    recipe: Annotated[
        str, typer.Option("--recipe", help="A placement recipe: fast, small, smoke, or a file.")
    ] = "fast",
    parts: Annotated[int, typer.Option("--parts", min=1, help="gumbel: stages share the budget in so many parts.")] = 6,
    randoms: Annotated[
        int, typer.Option("--randoms", min=0, help="gumbel: random allocations beside, as control.")
    ] = 4,
    factor: Annotated[
        float, typer.Option("--factor", min=1.0, help="gates: start with so many times the channels.")
    ] = 2.0,
    settings: SetOption = None,
    exhaustive: Annotated[
        str, typer.Option("--exhaustive", help="gumbel: also train every candidate with this training recipe.")
    ] = "",
    seed: Annotated[int, typer.Option("--seed", min=0)] = 0,
    resume: ResumeOption = "never",
    device: DeviceOption = "auto",
    image_size: DataSize = None,
    as_json: Json = False,
) -> None:
    """Search where the ReLUs of a stream network go, within a budget of ReLUs or of seconds online.

    Examples:

      sphynx allocate stream.json --data cifar100 -o runs/allocation

      sphynx allocate stream.json --data cifar100 --method gates --factor 3 -o runs/gates

      sphynx allocate stream.json --data cifar100 --latency-budget 90ms --prices prices.json -o runs/fast
    """
    from sphynx.data.open import open_data
    from sphynx.design.retraining import retrainer
    from sphynx.search.allocation.allocate import allocate as by_gumbel
    from sphynx.search.allocation.allocate import allocate_by_gates, with_accuracies
    from sphynx.search.allocation.candidates import allocations
    from sphynx.search.placement.algorithm import load_placement_recipe
    from sphynx.space.files import load_any_design
    from sphynx.space.stream import StreamDesign
    from sphynx.train.processes import pick_device
    from sphynx.train.recipe import load_recipe

    start = load_any_design(design)
    if not isinstance(start, StreamDesign):
        raise InputError(
            "only a stream's ReLUs can be allocated", where=str(design), remedy="Plan one: sphynx plan --family stream."
        )
    if method not in METHODS:
        raise InputError(f"{method!r} is unknown", where="--method", remedy=f"Use {' or '.join(METHODS)}.")
    if exhaustive and method == "gates":
        raise InputError("gates have no candidates", where="--exhaustive", remedy="Leave it out, or use gumbel.")
    budget = _budget(start, relu_budget, latency_budget, prices)
    settled = load_placement_recipe(recipe, parse_settings(settings or []))
    trained_by = load_recipe(exhaustive) if exhaustive else None
    candidates = allocations(start, budget, parts=parts, randoms=randoms, seed=seed)
    refuse_old_run(out, resume)
    images, chosen_device = open_data(data, image_size=image_size), pick_device(device)
    again = resume_command()
    if method == "gates":
        result = allocate_by_gates(
            start, images, settled, budget, out, factor=factor, seed=seed, device=chosen_device, resume=again,
            quiet=as_json,
        )  # fmt: skip
    else:
        result = by_gumbel(
            candidates, images, settled, budget, out, seed=seed, device=chosen_device, resume=again, quiet=as_json
        )
    if trained_by is not None:
        epochs = trained_by.epochs
        retrain = retrainer(
            images, trained_by, out / "exhaustive", seed=seed, device=chosen_device, quiet=as_json, resume_command=again
        )
        result = with_accuracies(result, candidates, lambda one: retrain(one, epochs), out)
    if as_json:
        print_json(result.to_json())
    else:
        _print(result, out)


def _budget(design: StreamDesign, relus: str, latency: str, prices: Path | None) -> Budget:
    from sphynx.program.cost.link import parse_seconds
    from sphynx.search.allocation.candidates import latency_budget, relu_budget
    from sphynx.space.planner import parse_relu_budget
    from sphynx.space.prices import load_prices

    if (relus and latency) or bool(latency) != (prices is not None):
        raise InputError(
            "a budget is of ReLUs, or of seconds with a table of prices", where="--latency-budget, --prices",
            remedy="Give --relu-budget, or both --latency-budget and --prices.",
        )  # fmt: skip
    if prices is not None:
        return latency_budget(design, parse_seconds(latency), load_prices(prices))
    return relu_budget(design, parse_relu_budget(relus) if relus else design.relus)


def _print(result: AllocationResult, out: Path) -> None:
    alone = any(one.accuracy is not None for one in result.allocations)
    print_table(
        f"Allocations: {out / 'design.json'}",
        ["name", "stages (map:W:C of each block)", ">ReLUs", ">probability", ">held-out accuracy in the search",
         *([">trained alone"] if alone else [])],
        (
            [
                f"{one.name}{' <' if one == result.best else ''}",
                one.stages,
                count(one.relus),
                f"{one.probability:.4f}",
                f"{one.held_out_accuracy:.2%}",
                *(["" if one.accuracy is None else f"{one.accuracy:.2%}"] if alone else []),
            ]
            for one in result.allocations
        ),
        note=f"by {result.method}, within {result.budget:,g} {result.unit}; {result.minutes:.1f} minutes",
    )  # fmt: skip
