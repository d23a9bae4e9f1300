"""`sphynx train`: trains (or distils) a design on data by a recipe."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sphynx.cli.design_options import Json
from sphynx.cli.output import print_json, print_table
from sphynx.cli.recipe_flags import with_recipe_flags
from sphynx.errors import InputError
from sphynx.train.recipe import AUTO, Recipe, load_recipe

if TYPE_CHECKING:
    from sphynx.data.images import Data
    from sphynx.data.source import DataSource
    from sphynx.data.streamed import StreamedData
    from sphynx.train.results import TrainSummary

RunArgument = Annotated[str, typer.Argument(help="A trained run folder, its model.safetensors, or a model's name.")]
DataOption = Annotated[str, typer.Option("--data", help="digits, a name from `sphynx data ls`, or a path.")]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:N.")]
DataSize = Annotated[int | None, typer.Option("--image-size", min=1, help="Resize the images of a folder to N x N.")]
KnownData = Annotated[
    str,
    typer.Option("--data", help="A name from `sphynx data ls`, or a path. [default: the data it was made with]"),
]
StreamOption = Annotated[bool, typer.Option("--stream", help="Read images from the folder while training (ImageNet).")]
KnownStream = Annotated[
    bool | None,
    typer.Option(
        "--stream/--no-stream", help="Read images from the folder while they are used. [default: as it was made]"
    ),
]


@with_recipe_flags
def train(
    design: Annotated[Path, typer.Argument(help="A design.json, as `sphynx plan -o` writes it.")],
    data: DataOption,
    out: Annotated[Path, typer.Option("--out", "-o", help="The run folder.")],
    recipe: Annotated[
        str,
        typer.Option(
            "--recipe",
            help="A name from `sphynx recipes ls`, or a TOML file. auto suits it and its epochs to the data.",
        ),
    ] = AUTO,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The first seed.")] = 0,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="How many seeds: mean and spread are given.")] = 1,
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
            help="A file of a teacher's logits, for recipes with view-epochs: made where absent, used without the "
            "teacher where it is there. [default: views.safetensors in the run folder]",
        ),
    ] = None,
    resume: Annotated[str, typer.Option("--resume", help="auto continues what the folder holds; never.")] = "never",
    device: DeviceOption = "auto",
    image_size: DataSize = None,
    stream: StreamOption = False,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Write TensorBoard events as well.")] = False,
    as_json: Json = False,
    **overrides: Any,
) -> None:
    """Train a design. The result is the final epoch's test accuracy; test images are not looked at before.

    Examples:

      sphynx train design.json --data digits --out runs/digits

      sphynx train design.json --data cifar100 --recipe paper-cifar100 --seeds 3 --out runs/paper

      sphynx train design.json --data cifar100 --distillation squared --teacher auto --out runs/distilled

      sphynx train design.json --data cifar100 --out runs/paper --recipe paper-cifar100 --resume auto

      sphynx train stream.json --data cifar100 --recipe frontier --teacher runs/teacher --views runs/views \
        --seeds 3 --out runs/stream

      torchrun --nproc-per-node 4 -m sphynx.cli.main train design.json --data imagenet/ --stream \
        --image-size 224 --recipe paper-imagenet --out runs/imagenet
    """
    if recipe != AUTO:  # its faults are told before the data are read, which can take long
        _check_teacher(teacher, views, load_recipe(recipe, overrides))
    if resume not in ("auto", "never"):
        raise InputError(f"{resume!r} is no way to resume", where="--resume", remedy="Use auto or never.")
    if resume == "never" and any(out.glob("**/checkpoint.pt")):
        raise InputError("the folder holds a run", where=str(out), remedy="Give --resume auto, or another --out.")

    from sphynx.data.open import open_any
    from sphynx.design.request import training_recipe
    from sphynx.space.files import load_any_design
    from sphynx.train.loop import Job
    from sphynx.train.processes import join_processes
    from sphynx.train.runs import teacher_for, train_seeds

    with join_processes(device) as processes:
        images = open_any(data, image_size=image_size, stream=stream)
        name, settings = training_recipe(recipe, overrides, images)
        _check_teacher(teacher, views, settings)
        if processes.leads and not as_json:
            why = f", as suits {len(images.train):,} training images" if recipe == AUTO else ""
            typer.echo(f"recipe {name}, epochs: {settings.epochs}{why}", err=True)
        job = Job(
            load_any_design(design),
            images,
            settings,
            out,
            seed,
            resume=resume == "auto",
            quiet=as_json,
            processes=processes,
            resume_command=resume_command(),
            tensorboard=tensorboard,
            views=views,
        )
        if teacher:
            job = job.taught_by(teacher_for(teacher, job))
        result = train_seeds(job, seeds)
        if processes.leads:
            _print(result, as_json, out)


def _check_teacher(teacher: str, views: Path | None, recipe: Recipe) -> None:
    if views is not None and not recipe.view_epochs:
        raise InputError("the recipe keeps no views", where="--views", remedy="Give --view-epochs N, or leave it out.")
    if views is not None and views.is_file() and recipe.distillation != "none":
        return
    if (recipe.distillation != "none") != bool(teacher):
        raise InputError(
            "distillation needs both a teacher and a loss", remedy="Give --teacher and --distillation squared (or kl)."
        )


def open_known(
    given: str,
    image_size: int | None,
    stream: bool | None,
    known: DataSource | None,
    *,
    where: str,
    flag: str = "--data",
) -> Data | StreamedData:
    """The data that the command names, else those that the run or the compiled program was made with.

    Size and streaming are the recorded ones for both, unless the command says otherwise: data that were moved are
    still to be made into the images that the network takes.
    """
    from sphynx.data.open import open_any
    from sphynx.data.source import DataSource

    if not given and known is None:
        raise InputError("it does not say which data it was made with", where=where, remedy=f"Name them: {flag} DATA.")
    source = known or DataSource(given)
    streamed = source.stream if stream is None else stream
    try:
        return open_any(given or source.spec, image_size=image_size or source.image_size, stream=streamed)
    except InputError as error:
        if not given:
            raise InputError(
                f"the data it was made with cannot be opened: {error.what}", where=error.where or where,
                remedy=f"Name them: {flag} DATA. {error.remedy}",
            ) from None  # fmt: skip
        if streamed and stream is None:
            remedy = f"{error.remedy} It was made with streamed images; to open others: --no-stream."
            raise InputError(error.what, where=error.where, remedy=remedy) from None
        if image_size is None and source.image_size is not None:
            _refuse_fixed_size(given, source.image_size)
        raise


def _refuse_fixed_size(data: str, recorded: int) -> None:
    """Where data cannot be resized to the size that was recorded: nobody gave it, so nobody can leave it out."""
    from sphynx.data.open import open_data

    try:
        height, width = open_data(data).train.shape[1:]
    except InputError:
        return  # they cannot be opened at all, which is the fault to tell
    raise InputError(
        f"its images are {height}x{width}, the network takes those of {recorded}x{recorded}", where=data,
        remedy=f"Name a folder of images, which are resized, or data of {recorded}x{recorded}.",
    ) from None  # fmt: skip


def resume_command() -> str:
    """The command that was given, to be given again."""
    words = ["sphynx", *sys.argv[1:]]
    if "--resume" not in words:
        words += ["--resume", "auto"]
    return shlex.join(words)


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
