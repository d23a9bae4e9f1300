"""`sphynx eval`: the accuracy of a trained run on data."""

from __future__ import annotations

from typing import Annotated

import typer

from sphynx.cli.design_options import Json
from sphynx.cli.output import count, print_json, print_table
from sphynx.cli.train import DataSize, DeviceOption, KnownData, KnownStream, RunArgument, open_known
from sphynx.errors import InputError


def evaluate(
    run: RunArgument,
    data: KnownData = "",
    split: Annotated[str, typer.Option("--split", help="test or train.")] = "test",
    device: DeviceOption = "auto",
    image_size: DataSize = None,
    stream: KnownStream = None,
    as_json: Json = False,
) -> None:
    """Evaluate a trained network in fp32, with the normalisation it was trained with.

    Examples:

      sphynx eval runs/digits

      sphynx eval runs/paper/seed-0 --data cifar100 --json

      sphynx eval sphynx-cifar100-25k --data cifar100
    """
    from sphynx.network.model import load_model, load_normalisation, trained_on
    from sphynx.run.environment import device_name
    from sphynx.space.shipped import model_path
    from sphynx.train.evaluate import evaluate as evaluate_network
    from sphynx.train.loop import check_fit
    from sphynx.train.processes import pick_device

    if split not in ("test", "train"):
        raise InputError(f"there is no split {split!r}", where="--split", remedy="Use test or train.")
    path, chosen = model_path(run), pick_device(device)
    network = load_model(path).to(chosen)
    opened = open_known(data, image_size, stream, trained_on(path), where=run)
    check_fit(network.design, opened)
    mean, std = load_normalisation(path)
    result = evaluate_network(network, opened.test if split == "test" else opened.train, mean, std)
    if as_json:
        where = {"run": run, "data": opened.name, "split": split, "device": device_name(chosen)}
        print_json({**where, **result.to_json()})
        return
    print_table(
        f"{run} on {opened.name}, {split} images",
        [">accuracy", ">top 5", ">loss", ">images"],
        [[f"{result.accuracy:.2%}", f"{result.top5:.2%}", f"{result.loss:.4f}", count(result.images)]],
    )
