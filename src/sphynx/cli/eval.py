"""`sphynx eval`: the accuracy of a trained run on data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sphynx.cli import options as opt
from sphynx.cli.output import count, print_json, print_table

if TYPE_CHECKING:
    from sphynx.train.confusion import ClassScore

TOP = 5  # classes in which the right one may be
WORST = 10  # classes that the table shows


def evaluate(
    run: opt.RunArgument,
    data: opt.KnownData = "",
    split: opt.SplitOption = "test",
    device: opt.DeviceOption = "auto",
    image_size: opt.DataSize = None,
    stream: opt.KnownStream = None,
    skip_bad: opt.SkipBad = False,
    per_class: Annotated[
        bool,
        typer.Option("--per-class", help=f"The {WORST} worst classes and what they are confused with; --json has all."),
    ] = False,
    as_json: opt.Json = False,
) -> None:
    """Evaluate a trained network in fp32, with the normalisation it was trained with.

    Examples:

      sphynx eval runs/digits

      sphynx eval runs/digits --per-class

      sphynx eval runs/paper/seed-0 --data cifar100 --json

      sphynx eval sphynx-cifar100-25k --data cifar100
    """
    from sphynx.api.networks import evaluate_network, load_network
    from sphynx.data.class_order import ordered_as
    from sphynx.run.environment import device_name
    from sphynx.run.work import pick_device
    from sphynx.train.confusion import Confusion

    network, chosen = load_network(run), pick_device(device)
    voice = opt.voice_for(False, False, as_json)
    opened = opt.open_known_images(data, image_size, stream, skip_bad, network.source, voice, where=run)
    confusion = Confusion(ordered_as(opened.train, network.class_names, where=opened.name).class_names)
    result = evaluate_network(network, opened, split=split, device=chosen, seen=confusion.add)
    classes = confusion.classes()
    if as_json:
        where = {"run": run, "data": opened.name, "split": split, "device": device_name(chosen)}
        listed = {"classes": [one.to_json() for one in classes]} if per_class else {}
        print_json({**where, **result.to_json(), **listed})
        return
    shown = {">accuracy": f"{result.accuracy:.2%}", ">top 5": f"{result.top5:.2%}", ">loss": f"{result.loss:.4f}"}
    if len(opened.train.class_names) <= TOP:
        del shown[">top 5"]  # always 100 %
    shown[">images"] = count(result.images)
    print_table(f"{run} on {opened.name}, {split} images", list(shown), [list(shown.values())])
    if per_class:
        _print_worst(classes)


def _print_worst(classes: list[ClassScore]) -> None:
    shown = [one for one in classes if one.accuracy is not None][:WORST]
    print_table(
        "Classes, worst first",
        ["class", ">accuracy", ">images", "most often confused with"],
        (
            [one.name, f"{one.accuracy:.2%}", count(one.images), f"{one.taken_for} ({one.times})" if one.times else "-"]
            for one in shown
        ),
        note=f"{len(shown)} of {len(classes)} classes; --json has all" if len(shown) < len(classes) else "",
    )
