"""`sphynx eval`: the accuracy of a trained run on data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli.design_options import Json
from sphynx.cli.output import count, print_json, print_table
from sphynx.cli.train import DataSize, DeviceOption, KnownData, KnownStream, RunArgument, open_known
from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.train.confusion import ClassScore

WORST = 10  # classes that the table shows


def evaluate(
    run: RunArgument,
    data: KnownData = "",
    split: Annotated[str, typer.Option("--split", help="test or train.")] = "test",
    device: DeviceOption = "auto",
    image_size: DataSize = None,
    stream: KnownStream = None,
    per_class: Annotated[
        bool,
        typer.Option("--per-class", help=f"The {WORST} worst classes, and what they are taken for; --json has all."),
    ] = False,
    as_json: Json = False,
) -> None:
    """Evaluate a trained network in fp32, with the normalisation it was trained with.

    Examples:

      sphynx eval runs/digits

      sphynx eval runs/digits --per-class

      sphynx eval runs/paper/seed-0 --data cifar100 --json

      sphynx eval sphynx-cifar100-25k --data cifar100
    """
    from sphynx.network.fit import require_fit
    from sphynx.network.model import load_model, load_normalisation, trained_on
    from sphynx.run.environment import device_name
    from sphynx.space.shipped import model_path
    from sphynx.train.confusion import Confusion
    from sphynx.train.evaluate import evaluate as evaluate_network
    from sphynx.train.processes import pick_device

    if split not in ("test", "train"):
        raise InputError(f"there is no split {split!r}", where="--split", remedy="Use test or train.")
    path, chosen = model_path(run), pick_device(device)
    network = load_model(path).to(chosen)
    opened = open_known(data, image_size, stream, trained_on(path), where=run)
    require_fit(network.design, opened, trained=True)
    mean, std = load_normalisation(path)
    images, confusion = opened.test if split == "test" else opened.train, Confusion(opened.train.class_names)
    result = evaluate_network(network, images, mean, std, seen=confusion.add)
    classes = confusion.classes()
    if as_json:
        where = {"run": run, "data": opened.name, "split": split, "device": device_name(chosen)}
        listed = {"classes": [one.to_json() for one in classes]} if per_class else {}
        print_json({**where, **result.to_json(), **listed})
        return
    print_table(
        f"{run} on {opened.name}, {split} images",
        [">accuracy", ">top 5", ">loss", ">images"],
        [[f"{result.accuracy:.2%}", f"{result.top5:.2%}", f"{result.loss:.4f}", count(result.images)]],
    )
    if per_class:
        _print_worst(classes)


def _print_worst(classes: list[ClassScore]) -> None:
    shown = [one for one in classes if one.accuracy is not None][:WORST]
    print_table(
        "Classes, worst first",
        ["class", ">accuracy", ">images", "most often taken for"],
        (
            [one.name, f"{one.accuracy:.2%}", count(one.images), f"{one.taken_for} ({one.times})" if one.times else "-"]
            for one in shown
        ),
        note=f"{len(shown)} of {len(classes)} classes; --json has all" if len(shown) < len(classes) else "",
    )
