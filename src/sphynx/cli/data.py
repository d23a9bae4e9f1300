"""`sphynx data`: lists, fetches and describes data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sphynx.cli.group import Verbs
from sphynx.cli.options import (
    DataSize,
    GroupsOption,
    Json,
    SkipBad,
    SplitOption,
    parse_bytes,
    reading,
    say_left_out,
    voice_for,
)
from sphynx.cli.output import count, print_json, print_table, say_next
from sphynx.cli.output_files import out_file
from sphynx.errors import InputError
from sphynx.units import bytes_text, class_text

app = Verbs(invoke_without_command=True)


@app.callback()
def data(context: typer.Context) -> None:
    """Data sets: list, fetch, show, sample, pack."""
    if context.invoked_subcommand is None:
        list_data()


@app.command("ls")
def list_data(as_json: Json = False) -> None:
    """List the data sets that have a name, and whether they are on this machine.

    Example:

      sphynx data ls
    """
    from sphynx.data.catalogue import CATALOGUE, data_home

    digits = "scikit-learn's digits: 1,797 grey images of 8x8, 10 classes"
    rows = [("digits", digits, True, "part of scikit-learn", "CC BY 4.0, E. Alpaydin and C. Kaynak, UCI")]
    for entry in CATALOGUE.values():
        path = data_home() / entry.opens
        rows.append((entry.name, entry.description, path.exists(), str(path), entry.terms))
    if as_json:
        print_json([dict(zip(("name", "description", "here", "path", "terms"), row, strict=True)) for row in rows])
        return
    print_table(
        "Data sets",
        ["name", "what", "here", "where"],
        ([name, what, "yes" if here else "no", where] for name, what, here, where, _terms in rows),
        note="Any folder of class folders works too: give its path as --data.",
    )


@app.command("get")
def get(name: Annotated[str, typer.Argument(help="A name from `sphynx data ls`.")]) -> None:
    """Fetch a data set into $SPHYNX_DATA (or the user's cache) and check its hash.

    Example:

      sphynx data get cifar100
    """
    from sphynx.data.catalogue import get as fetch

    typer.echo(str(fetch(name)))
    say_next("sphynx", "design", "--data", name, "--relu-budget", "25k")


@app.command("show")
def show(
    data: Annotated[str, typer.Argument(help="digits, a name from `sphynx data ls`, or a path.")],
    image_size: DataSize = None,
    stream: Annotated[
        bool, typer.Option("--stream", help="Leave the images in the folder and read a sample only (ImageNet).")
    ] = False,
    skip_bad: SkipBad = False,
    groups: GroupsOption = None,
    as_json: Json = False,
) -> None:
    """Open a data set, check every image (with --stream: a sample), and describe it.

    All files that cannot be used are listed at once.

    Examples:

      sphynx data show digits

      sphynx data show my-images/ --image-size 64 --json

      sphynx data show my-images/ --skip-bad

      sphynx data show imagenet/ --stream --image-size 224
    """
    import torch

    from sphynx.api.data import open_data

    with reading(data, voice_for(False, False, as_json)):
        opened = open_data(data, image_size=image_size, stream=stream, skip_bad=skip_bad, groups=groups)
    counts = [
        torch.bincount(images.labels, minlength=opened.classes).tolist() for images in (opened.train, opened.test)
    ]
    if as_json:
        per_class = {
            name: {"train": counts[0][label], "test": counts[1][label]}
            for label, name in enumerate(opened.train.class_names)
        }
        left_out = opened.left_out
        not_used = {
            "bad_files": {file.name: file.why for file in left_out.bad},
            "other_formats": dict(left_out.formats),
            "other_folders": list(left_out.folders),
        }
        described = {"mean": opened.mean, "std": opened.std, "class_counts": per_class}
        grouped = {} if opened.train.groups is None else {"shared_groups": opened.shared_groups}
        print_json({**opened.identity(), **described, **grouped, "left_out": not_used})
        return
    groups_of = [images.groups for images in (opened.train, opened.test)]
    with_groups = [] if groups is None else [[count(0 if own is None else len(own.unique()))] for own in groups_of]
    print_table(
        f"{opened.name}: {'x'.join(map(str, opened.train.shape))} images, {opened.classes} classes",
        ["split", ">images", ">fewest of a class", ">most of a class", *([">groups"] if with_groups else [])],
        (
            [split, count(sum(numbers)), count(min(numbers)), count(max(numbers)), *grouped]
            for split, numbers, grouped in zip(("train", "test"), counts, with_groups or [[], []], strict=True)
        ),
        note=f"mean {_numbers(opened.mean)}, std {_numbers(opened.std)}; first classes: "
        + ", ".join(map(class_text, opened.train.class_names[:8])),
    )
    say_left_out(opened, voice_for(False, False))


@app.command("sample")
def sample(
    data: Annotated[str, typer.Argument(help="digits, a name from `sphynx data ls`, or a path.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The picture: a .png file.", callback=out_file)],
    number: Annotated[int, typer.Option("--number", "-n", min=0, help="Number of the image, counted from 0.")] = 0,
    split: SplitOption = "test",
    image_size: DataSize = None,
    skip_bad: SkipBad = False,
) -> None:
    """Write one image of a data set as a picture file to ask a server about, and print its class.

    Examples:

      sphynx data sample digits -o digit.png

      sphynx data sample cifar100 --number 7 -o picture.png
    """
    from sphynx.api.data import open_data
    from sphynx.data.picture import save_picture

    with reading(data, voice_for(False, False)):
        opened = open_data(data, image_size=image_size, skip_bad=skip_bad)
    say_left_out(opened, voice_for(False, False))
    images = opened.test if split == "test" else opened.train
    if number >= len(images):
        raise InputError(
            f"there are only {len(images):,} {split} images",
            where=f"--number {number}",
            remedy=f"Give a number from 0 to {len(images) - 1}.",
        )
    save_picture(images.images[number].numpy(), out)
    typer.echo(f"wrote {out}: {class_text(images.class_names[int(images.labels[number])])}", err=True)
    say_next("sphynx", "infer", str(out), "--keys", "keys/alice")


def _numbers(values: tuple[float, ...]) -> str:
    return " ".join(f"{value:.4f}" for value in values)


@app.command("pack")
def pack(
    images: Annotated[str, typer.Argument(metavar="DATA", help="A folder of images, or other data.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="A new folder for the parts.")],
    image_size: DataSize = None,
    skip_bad: SkipBad = False,
    groups: GroupsOption = None,
    part_size: Annotated[str, typer.Option("--part-size", help="The largest size of a part.")] = "60M",
    as_json: Json = False,
) -> None:
    """Pack a data set into a few files of PNG images at the training size, to copy it to another machine.

    The folder can be used like any other data; it keeps the names of classes, and groups.

    Example:

      sphynx data pack xrays --image-size 128 --groups 'person\\d+|IM-\\d+' -o xrays-128
    """
    from sphynx.api.data import open_data
    from sphynx.data.packed import save_packed

    voice = voice_for(False, False, as_json)
    with reading(images, voice):
        opened = open_data(images, image_size=image_size, skip_bad=skip_bad, groups=groups)
    say_left_out(opened, voice)
    parts = save_packed(opened, out, parse_bytes(part_size, "--part-size"))
    if as_json:
        print_json({"parts": [{"path": str(path), "bytes": path.stat().st_size} for path in parts]})
        return
    print_table(f"Packed: {out}", ["part", ">size"], ([path.name, bytes_text(path.stat().st_size)] for path in parts))
