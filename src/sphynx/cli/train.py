"""`sphynx train`: trains (or distils) a design on data by a recipe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli.options import Images, Output, StreamOption, reading, say_left_out, voice_for
from sphynx.cli.output import print_json, print_table, say_next
from sphynx.cli.record_flags import meaning_of, with_record_flags
from sphynx.train.recipe import Recipe
from sphynx.train.settings import TrainSettings
from sphynx.units import percent

if TYPE_CHECKING:
    from sphynx.train.results import TrainSummary


@with_record_flags
def train(
    design: Annotated[Path, typer.Argument(help="A design.json, as `sphynx plan -o` writes it.")],
    images: Images,
    settings: TrainSettings,
    output: Output,
    stream: StreamOption = False,
    epochs: Annotated[int | None, typer.Option("--epochs", help=meaning_of(Recipe, "epochs"))] = None,
    batch_size: Annotated[int | None, typer.Option("--batch-size", help=meaning_of(Recipe, "batch_size"))] = None,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", help=meaning_of(Recipe, "learning_rate"))
    ] = None,
) -> None:
    """Train a design. The result is the test accuracy after the final epoch; test images are not used before.

    Every value of a recipe can be set; `sphynx recipes show NAME` lists them.

    Examples:

      sphynx train design.json --data digits --out runs/digits

      sphynx train design.json --data cifar100 --recipe paper-cifar100 --seeds 3 --out runs/paper

      sphynx train design.json --data cifar100 --set distillation=kl --teacher auto --out runs/distilled

      sphynx train design.json --data cifar100 --out runs/paper --recipe paper-cifar100 --resume

      sphynx train stream.json --data cifar100 --recipe frontier --teacher runs/teacher --views runs/views \
        --seeds 3 --out runs/stream

      torchrun --nproc-per-node 4 -m sphynx.cli.main train design.json --data imagenet/ --stream \
        --image-size 224 --recipe paper-imagenet --out runs/imagenet
    """
    from sphynx.api.training import check_recipe, train_network
    from sphynx.data.open import open_any
    from sphynx.space.artifact import read_design
    from sphynx.train.processes import leads_here

    typed = {"epochs": epochs, "batch_size": batch_size, "learning_rate": learning_rate}
    values = {**settings.settings, **{name: value for name, value in typed.items() if value is not None}}
    voice = output.voice
    settings = replace(settings, settings=values, progress=voice)
    described = read_design(design)
    check_recipe(settings)
    with reading(images.data, voice if leads_here() else voice_for(False, True)):
        data = open_any(
            images.data,
            image_size=images.image_size,
            stream=stream,
            skip_bad=images.skip_bad,
            groups=images.groups,
        )
    if leads_here():
        say_left_out(data, voice)
    result = train_network(described, data, **vars(settings))
    if leads_here():
        _print(result, output.as_json, Path(settings.out))


def _print(result: TrainSummary, as_json: bool, out: Path) -> None:
    if as_json:
        print_json((result.runs[0] if len(result.runs) == 1 else result).to_json())
        return
    spread = result.accuracy_std
    print_table(
        f"Trained: {out}",
        [">seed", ">test accuracy", ">epochs", ">minutes", "device"],
        (
            [str(run.seed), percent(run.accuracy), str(run.epochs), f"{run.minutes:.1f}", run.device]
            for run in result.runs
        ),
        note=f"mean {percent(result.accuracy)}, std {percent(spread)}, n = {len(result.runs)}"
        if spread is not None
        else "",
    )
    say_next("sphynx", "compile", str(out), "-o", f"compiled/{out.name}")
