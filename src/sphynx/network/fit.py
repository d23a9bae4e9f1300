"""Check that a network is for the images of a data set. The refusal says what helps: other data, or a design by which
command.
"""

from __future__ import annotations

from sphynx.data.images import DataFace
from sphynx.errors import InputError
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.reference import ResNet18Design, Vgg11Design, WideResNetDesign
from sphynx.space.stream import StreamDesign
from sphynx.space.tally import Shape


def require_fit(design: AnyDesign, data: DataFace, *, trained: bool = False) -> None:
    """`trained`: the network is there already, so that only other data can help."""
    image = Shape(*data.train.shape)
    if design.image == image and design.classes == data.classes:
        return
    raise InputError(
        f"the {'network' if trained else 'design'} is for {design.image} images of {design.classes} classes, "
        f"the data has {image} images of {data.classes} classes",
        where=data.name,
        remedy="Give the data that the network was trained on, or data like it."
        if trained
        else _command(design, image, data.classes),
    )


def _command(design: AnyDesign, image: Shape, classes: int) -> str:
    if image.height != image.width:
        return "Give `image_size=N`, which resizes all images to N x N, and a design for that size."
    size, channels = image.height, image.channels
    if isinstance(design, Design | StreamDesign):
        family = "stream" if isinstance(design, StreamDesign) else "cells"
        return (
            f"Plan a design for this data: sphynx plan --family {family} --relu-budget BUDGET --image-size {size} "
            f"--image-channels {channels} --classes {classes} -o design.json."
        )
    for kind, name in ((ResNet18Design, "resnet18"), (Vgg11Design, "vgg11"), (WideResNetDesign, "wide-resnet")):
        if isinstance(design, kind):
            return (
                f"Make a design for this data: sphynx show {name} --image-size {size} --image-channels {channels} "
                f"--classes {classes} -o design.json."
            )
    return "Make a design for this data."
