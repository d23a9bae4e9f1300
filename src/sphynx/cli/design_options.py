"""Flags that several verbs share to say which network is meant, and how they become a Genotype or a Design."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, get_args

import typer

from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.space.design import Design, Stem
    from sphynx.space.genotype import Genotype
    from sphynx.space.operations import ConvStack as ConvStackName
    from sphynx.space.reference import Pool
    from sphynx.space.stream import Borders

# From this size on, the three stride-2 convolutions of the ImageNet stem come first unless --stem says otherwise.
IMAGENET_STEM_FROM = 128

Cells = Annotated[
    str, typer.Option("--cells", help="A published genotype's name (sphynx, darts-v2, pc-darts, ...) or a file.")
]
ImageSize = Annotated[int, typer.Option("--image-size", help="Height and width of the images, in pixels.")]
ImageChannels = Annotated[int, typer.Option("--image-channels", help="3 for colour, 1 for grey.")]
Classes = Annotated[int, typer.Option("--classes", help="How many classes the network tells apart.")]
StemOption = Annotated[
    str, typer.Option("--stem", help=f"small, imagenet, or auto (imagenet from {IMAGENET_STEM_FROM} pixels on).")
]
Balancing = Annotated[str, typer.Option("--balancing", help="relu (channels x4 at a reduce cell) or flop (x2).")]
ConvStack = Annotated[str, typer.Option("--conv-stack", help="paper, single or pad_once: the form of conv3/conv5.")]
Convolution = Annotated[str, typer.Option("--convolution", help="vanilla or separable.")]
BordersOption = Annotated[
    str, typer.Option("--borders", help="Of a stream: halo, which fuses exactly under the protocol, or zero padding.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def stem_for(choice: str, image_size: int) -> Stem:
    if choice == "auto":
        return "imagenet" if image_size >= IMAGENET_STEM_FROM else "small"
    if choice in ("small", "imagenet"):
        return choice  # type: ignore[return-value]
    raise InputError(f"unknown stem {choice!r}", remedy="Use small, imagenet or auto.")


def cells_for(choice: str) -> Genotype:
    """A genotype by name or file, brought into the Sphynx space where it is of the micro space."""
    from sphynx.space.genotype import load_genotype
    from sphynx.space.published_cells import GENOTYPES, genotype_named, into_sphynx_space

    is_file = choice not in GENOTYPES and (choice.endswith(".json") or Path(choice).exists())
    return into_sphynx_space(load_genotype(Path(choice)) if is_file else genotype_named(choice))


def design_for(
    *,
    cells: str,
    channels: int,
    depth: int,
    reduce_positions: tuple[int, ...] | None,
    image_size: int,
    image_channels: int,
    classes: int,
    stem: str,
    balancing: str,
    conv_stack: str,
    convolution: str,
    name: str = "",
) -> Design:
    from sphynx.space.design import Design, default_reduce_positions
    from sphynx.space.tally import Shape

    return Design(
        genotype=cells_for(cells),
        channels=channels,
        depth=depth,
        reduce_positions=default_reduce_positions(depth) if reduce_positions is None else reduce_positions,
        image=Shape(image_channels, image_size, image_size),
        classes=classes,
        stem=stem_for(stem, image_size),
        balancing=balancing,  # type: ignore[arg-type]  # Design names what it allows
        conv_stack=conv_stack,  # type: ignore[arg-type]
        convolution=convolution,  # type: ignore[arg-type]
        name=name,
    )


def parse_positions(text: str) -> tuple[int, ...]:
    """`0,1` -> (0, 1)"""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(f"{text!r} are not positions", remedy="Write them as 0,1.") from None


def pool_for(name: str) -> Pool:
    from sphynx.space.reference import Pool as Known

    if name not in get_args(Known):
        raise InputError(f"{name!r} is unknown", where="--pool", remedy="Use average or max.")
    return name  # type: ignore[return-value]  # checked above


def conv_stack_for(name: str) -> ConvStackName:
    from sphynx.space.operations import ConvStack as Known

    if name not in get_args(Known):
        raise InputError(f"{name!r} is unknown", where="--conv-stack", remedy=f"Use {', '.join(get_args(Known))}.")
    return name  # type: ignore[return-value]  # checked above


def borders_for(name: str) -> Borders:
    from sphynx.space.stream import Borders as Known

    if name not in get_args(Known):
        raise InputError(f"{name!r} is unknown", where="--borders", remedy=f"Use {' or '.join(get_args(Known))}.")
    return name  # type: ignore[return-value]  # checked above
