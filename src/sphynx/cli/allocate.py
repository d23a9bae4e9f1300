"""`sphynx allocate`: finds how many rectified channels each block of a stream network gets of a budget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import count, print_json, print_table
from sphynx.errors import InputError
from sphynx.search.choices import Method
from sphynx.train.recipe import AUTO

if TYPE_CHECKING:
    from sphynx.search.allocation.allocate import AllocationResult
    from sphynx.search.allocation.candidates import Budget
    from sphynx.space.stream import StreamDesign

TRAINING = "training."  # what the names of the training recipe's settings begin with
HELD_OUT = 0.1  # the share that a search which listens to a teacher learns the allocation from


def allocate(
    design: Annotated[Path, typer.Argument(help="A stream's design.json: its stages, widths and number of blocks.")],
    data: opt.DataOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder; the new design.json goes there.")],
    method: Annotated[
        Method,
        typer.Option(
            "--method",
            help="gumbel: one network per candidate, sampled. gates: one wide network that loses channels.",
        ),
    ] = "gumbel",
    relu_budget: Annotated[
        str, typer.Option("--relu-budget", help="25.6k or 25600. [default: as many as the design has]")
    ] = "",
    latency_budget: Annotated[
        str,
        typer.Option(
            "--latency-budget", help="Instead of --relu-budget: online latency, such as 90ms; needs --prices."
        ),
    ] = "",
    prices: Annotated[
        Path | None, typer.Option("--prices", help="The file that `sphynx estimate DESIGN --prices FILE` wrote.")
    ] = None,
    multiple: Annotated[
        int,
        typer.Option("--multiple", min=1, help="Round the channels of larger blocks to multiples of this: 8 on a GPU."),
    ] = 1,
    recipe: opt.RecipeOption = AUTO,
    training: Annotated[
        str,
        typer.Option(
            "--training",
            help="A training recipe with a teacher's views, such as frontier: it trains the weights, and the "
            "allocation learns from the images that it holds out. To change its values: --set training.NAME=VALUE.",
        ),
    ] = "",
    views: Annotated[
        Path | None, typer.Option("--views", help="With --training: the file of views; created if missing.")
    ] = None,
    teacher: Annotated[
        str, typer.Option("--teacher", help="With --training: makes the views; a trained run or a model's name.")
    ] = "",
    parts: Annotated[
        int, typer.Option("--parts", min=1, help="gumbel: how many parts the budget is split into among the stages.")
    ] = 6,
    randoms: Annotated[int, typer.Option("--randoms", min=0, help="gumbel: random allocations to compare with.")] = 4,
    factor: Annotated[
        float, typer.Option("--factor", min=1.0, help="gates: start with this many times the channels.")
    ] = 2.0,
    settings: opt.SetOption = None,
    exhaustive: Annotated[
        str, typer.Option("--exhaustive", help="gumbel: also train every candidate with this training recipe.")
    ] = "",
    seed: opt.Seed = 0,
    resume: opt.ResumeOption = "never",
    device: opt.DeviceOption = "auto",
    image_size: opt.DataSize = None,
    skip_bad: opt.SkipBad = False,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
) -> None:
    """Search where the ReLUs of a stream network go, within a budget of ReLUs or of seconds online.

    Examples:

      sphynx allocate stream.json --data cifar100 -o runs/allocation

      sphynx allocate stream.json --data cifar100 --method gates --factor 3 -o runs/gates

      sphynx allocate stream.json --data cifar100 --recipe taught --training frontier --teacher runs/teacher \
        --views runs/held-out-views -o runs/taught

      sphynx allocate stream.json --data cifar100 --latency-budget 90ms --prices prices.json -o runs/fast
    """
    from sphynx.design.request import placement_recipe
    from sphynx.design.retraining import retrainer
    from sphynx.design.taught import taught_job, taught_lessons
    from sphynx.run.resuming import refuse_old_run
    from sphynx.search.allocation.allocate import allocate as by_gumbel
    from sphynx.search.allocation.allocate import allocate_by_gates, with_accuracies
    from sphynx.search.allocation.candidates import allocations
    from sphynx.search.placement.recipe import load_placement_recipe
    from sphynx.space.files import load_any_design
    from sphynx.space.stream import StreamDesign
    from sphynx.train.processes import pick_device
    from sphynx.train.recipe import load_recipe

    start = load_any_design(design)
    if not isinstance(start, StreamDesign):
        raise InputError(
            "ReLUs can only be allocated in a stream network",
            where=str(design),
            remedy="Plan one: sphynx plan --family stream.",
        )
    if exhaustive and method == "gates":
        raise InputError(
            "the method gates has no candidates to train",
            where="--exhaustive",
            remedy="Leave it out, or give --method gumbel.",
        )
    if (views or teacher) and not training:
        raise InputError(
            "a teacher needs a training recipe", where="--views, --teacher", remedy="Give --training frontier."
        )
    budget = _budget(start, relu_budget, latency_budget, prices, multiple)
    values = opt.parse_settings(settings)
    of_training = {name.removeprefix(TRAINING): values.pop(name) for name in list(values) if name.startswith(TRAINING)}
    lessons_by = load_recipe(training, {"held_out": HELD_OUT, **of_training}) if training else None
    if recipe != AUTO:
        load_placement_recipe(recipe, values)  # its faults are told before the data are read, which can take long
    trained_by = load_recipe(exhaustive) if exhaustive else None
    candidates = allocations(start, budget, parts=parts, randoms=randoms, seed=seed)
    refuse_old_run(out, resume)
    voice = opt.voice_for(verbose, quiet, as_json)
    images, chosen_device = opt.open_images(data, image_size, skip_bad, voice), pick_device(device)
    settled = placement_recipe(recipe, values, images)
    lessons = None
    if lessons_by is not None:
        job = taught_job(start, images, lessons_by, out, views, teacher, seed=seed, device=chosen_device, voice=voice)
        lessons = taught_lessons(job)
    if method == "gates":
        result = allocate_by_gates(
            start,
            images,
            settled,
            budget,
            out,
            factor=factor,
            lessons=lessons,
            seed=seed,
            device=chosen_device,
            voice=voice,
        )
    else:
        result = by_gumbel(
            candidates,
            images,
            settled,
            budget,
            out,
            lessons=lessons,
            seed=seed,
            device=chosen_device,
            voice=voice,
        )
    if trained_by is not None:
        epochs = trained_by.epochs
        retrain = retrainer(images, trained_by, out / "exhaustive", seed=seed, device=chosen_device, voice=voice)
        result = with_accuracies(result, candidates, lambda one: retrain(one, epochs), out)
    if as_json:
        print_json(result.to_json())
    else:
        _print(result, out)


def _budget(design: StreamDesign, relus: str, latency: str, prices: Path | None, multiple: int) -> Budget:
    from sphynx.program.cost.link import parse_seconds
    from sphynx.search.allocation.candidates import latency_budget, relu_budget
    from sphynx.space.planner import parse_relu_budget
    from sphynx.space.prices import load_prices

    if (relus and latency) or bool(latency) != (prices is not None):
        raise InputError(
            "the budget must be in ReLUs, or in seconds with a table of prices",
            where="--latency-budget, --prices",
            remedy="Give --relu-budget, or both --latency-budget and --prices.",
        )
    if prices is not None:
        return latency_budget(design, parse_seconds(latency), load_prices(prices), multiple)
    return relu_budget(design, parse_relu_budget(relus) if relus else design.relus, multiple)


def _print(result: AllocationResult, out: Path) -> None:
    alone = any(one.accuracy is not None for one in result.allocations)
    print_table(
        f"Allocations: {out / 'design.json'}",
        [
            "name",
            "stages (map:W:C of each block)",
            ">ReLUs",
            ">probability",
            ">held-out accuracy in the search",
            *([">trained alone"] if alone else []),
        ],
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
        note=f"found using {result.method}, within {result.budget:,g} {result.unit}; {result.minutes:.1f} minutes",
    )
