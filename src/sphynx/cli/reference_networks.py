"""The reference networks by name, resnet18 and vgg11, and which flags that describe a network say nothing about one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sphynx.cli.design_options import pool_for, stem_for
from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.space.reference import ResNet18Design, Vgg11Design

REFERENCES = ("resnet18", "vgg11")

_OF_CELLS = ("depth", "reduce_at", "balancing", "conv_stack", "convolution")
_MEANINGLESS = {"resnet18": _OF_CELLS, "vgg11": (*_OF_CELLS, "stem")}  # VGG11 starts in one way only
_MEANINGLESS_OF_CELLS = ("pool",)


def refuse_meaningless_flags(context: typer.Context, network: str) -> None:
    """Those given for a network, by name or by its cells, that has nothing of the kind."""
    given = [
        f"--{flag.replace('_', '-')}"
        for flag in _MEANINGLESS.get(network, _MEANINGLESS_OF_CELLS)
        if (source := context.get_parameter_source(flag)) is not None and source.name != "DEFAULT"
    ]
    if given:
        kind = network if network in REFERENCES else "a network of cells"
        raise InputError(
            f"{kind} has nothing of the kind", where=", ".join(given), remedy=f"Leave {' and '.join(given)} out."
        )


def reference_network(
    what: str, width: int, image_size: int, image_channels: int, classes: int, stem: str, pool: str
) -> ResNet18Design | Vgg11Design:
    from sphynx.space.reference import ResNet18Design, Vgg11Design
    from sphynx.space.tally import Shape

    image, chosen = Shape(image_channels, image_size, image_size), pool_for(pool)
    if what == "vgg11":
        return Vgg11Design(width, image, classes, pool=chosen)
    return ResNet18Design(width, image, classes, stem_for(stem, image_size), chosen)
