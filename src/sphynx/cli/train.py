"""`sphynx train`: trains (or distils) a design on data by a recipe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import print_json, print_table
from sphynx.cli.recipe_flags import with_recipe_flags
from sphynx.train.recipe import AUTO, Recipe, load_recipe

if TYPE_CHECKING:
    from sphynx.train.results import TrainSummary


@with_recipe_flags
def train(
    design: Annotated[Path, typer.Argument(help="A design.json, as `sphynx plan -o` writes it.")],
    data: opt.DataOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")],
    recipe: opt.RecipeOption = AUTO,
    seed: opt.Seed = 0,
    seeds: opt.Seeds = 1,
    teacher: Annotated[
        str,
        typer.Option(
            "--teacher", help="auto (trains the same cells with ReLUs inside), a trained run, or a model's name."
        ),
    ] = "",
    views: Annotated[
        Path | None,
        typer.Option(
            "--views",
            help="A file of a teacher's logits, for recipes with view-epochs: created if missing; if it exists, "
            "no teacher is needed. [default: views.safetensors in the run folder]",
        ),
    ] = None,
    resume: opt.ResumeOption = "never",
    ray: opt.RayOption = "",
    device: opt.DeviceOption = "auto",
    image_size: opt.DataSize = None,
    skip_bad: opt.SkipBad = False,
    stream: opt.StreamOption = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard events as well.")] = False,
    verbose: opt.Verbose = False,
    quiet: opt.Quiet = False,
    as_json: opt.Json = False,
    **overrides: Any,
) -> None:
    """Train a design. The result is the test accuracy after the final epoch; test images are not used before.

    Examples:

      sphynx train design.json --data digits --out runs/digits

      sphynx train design.json --data cifar100 --recipe paper-cifar100 --seeds 3 --out runs/paper

      sphynx train design.json --data cifar100 --distillation kl --teacher auto --out runs/distilled

      sphynx train design.json --data cifar100 --out runs/paper --recipe paper-cifar100 --resume auto

      sphynx train stream.json --data cifar100 --recipe frontier --teacher runs/teacher --views runs/views \
        --seeds 3 --out runs/stream

      torchrun --nproc-per-node 4 -m sphynx.cli.main train design.json --data imagenet/ --stream \
        --image-size 224 --recipe paper-imagenet --out runs/imagenet
    """
    from sphynx.api.training import train_network
    from sphynx.data.open import open_any
    from sphynx.space.artifact import read_design
    from sphynx.train.processes import join_processes

    voice = opt.voice_for(verbose, quiet, as_json)
    with join_processes(device) as processes:

        def started(name: str, chosen: Recipe) -> None:
            suited = recipe == AUTO and "epochs" not in overrides
            why = f", as suits {len(images.train):,} training images" if suited else ""
            voice.say(f"recipe {name}, epochs: {chosen.epochs}{why}", stage="train")

        if recipe != AUTO:
            load_recipe(recipe, overrides)  # its faults are told before the data are read, which can take long
        described = read_design(design)  # before the data are read, as its recipe
        images = open_any(data, image_size=image_size, stream=stream, skip_bad=skip_bad)
        if processes.leads:
            opt.say_left_out(images, voice)
        result = train_network(
            described,
            images,
            out,
            recipe=recipe,
            settings=overrides,
            seed=seed,
            seeds=seeds,
            teacher=teacher or None,
            views=views,
            resume=resume == "auto",
            device=device,
            tensorboard=tensorboard,
            progress=voice,
            started=started,
            processes=processes,
            ray=ray,
        )
        if processes.leads:
            _print(result, as_json, out)


def _print(result: TrainSummary, as_json: bool, out: Path) -> None:
    if as_json:
        print_json((result.runs[0] if len(result.runs) == 1 else result).to_json())
        return
    spread = result.accuracy_std
    print_table(
        f"Trained: {out}",
        [">seed", ">test accuracy", ">epochs", ">minutes", "device"],
        (
            [str(run.seed), f"{run.accuracy:.2%}", str(run.epochs), f"{run.minutes:.1f}", run.device]
            for run in result.runs
        ),
        note=f"mean {result.accuracy:.2%}, std {spread:.2%}, n = {len(result.runs)}" if spread is not None else "",
    )
