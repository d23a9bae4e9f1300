"""Networks by name that are not of cells (resnet18, vgg11, wide-resnet, stream), and which flags say nothing of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from sphynx.cli import options as opt
from sphynx.errors import InputError

if TYPE_CHECKING:
    from sphynx.space.choices import Borders, Pool, StemChoice
    from sphynx.space.files import ReferenceDesign
    from sphynx.space.stream import StreamDesign

REFERENCES = ("resnet18", "vgg11", "wide-resnet")
STREAM = "stream"

_OF_CELLS = ("reduce_at", "balancing", "conv_stack", "convolution")
_OF_STREAMS = ("stages", "borders")
_MEANINGLESS = {
    "resnet18": ("depth", *_OF_CELLS, *_OF_STREAMS),
    "vgg11": ("depth", *_OF_CELLS, *_OF_STREAMS, "stem"),  # VGG11 starts in one way only
    "wide-resnet": (*_OF_CELLS, *_OF_STREAMS, "stem", "pool"),
    STREAM: ("channels", "depth", *_OF_CELLS, "stem", "pool"),
}
_MEANINGLESS_OF_CELLS = ("pool", *_OF_STREAMS)
_WIDE_RESNET_DEPTH, _WIDE_RESNET_WIDTH, _WIDTH = 28, 10, 64


def refuse_meaningless_flags(context: typer.Context, network: str) -> None:
    """Refuse flags given for a network, by name or by its cells, that has no such property."""
    given = opt.given_flags(context, _MEANINGLESS.get(network, _MEANINGLESS_OF_CELLS))
    if given:
        kind = network if network in _MEANINGLESS else "a network of cells"
        raise InputError(
            f"{kind} has no such property", where=", ".join(given), remedy=f"Leave {' and '.join(given)} out."
        )


def reference_network(
    what: str,
    channels: int | None,
    depth: int | None,
    image_size: int,
    image_channels: int,
    classes: int,
    stem: StemChoice,
    pool: Pool,
) -> ReferenceDesign:
    from sphynx.space.design import stem_for
    from sphynx.space.reference import ResNet18Design, Vgg11Design, WideResNetDesign
    from sphynx.space.tally import Shape

    image = Shape(image_channels, image_size, image_size)
    if what == "wide-resnet":
        layers = _WIDE_RESNET_DEPTH if depth is None else depth
        return WideResNetDesign(layers, _WIDE_RESNET_WIDTH if channels is None else channels, image, classes)
    width = _WIDTH if channels is None else channels
    if what == "vgg11":
        return Vgg11Design(width, image, classes, pool=pool)
    return ResNet18Design(width, image, classes, stem_for(stem, image_size), pool)


def stream_network(stages: str, borders: Borders, image_size: int, image_channels: int, classes: int) -> StreamDesign:
    from sphynx.space.stream import StreamDesign, stages_from_text
    from sphynx.space.tally import Shape

    image = Shape(image_channels, image_size, image_size)
    found, stem = stages_from_text(stages, image)
    return StreamDesign(found, image, classes, stem.stride, borders, stem_kernel=stem.kernel)
