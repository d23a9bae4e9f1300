"""Exact accounts of the reference networks, ResNet18 (He et al. 2016) and VGG11 with batch norm (Simonyan 2015).

They have the same JSON face as a `Design`, so that they can be trained, saved and compared in the same way.
`width` is the number of channels of the first stage (64 in the originals). `network.reference` builds the same.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from sphynx.errors import InputError
from sphynx.space.design import Stem
from sphynx.space.tally import Account, Shape, Tally

Pool = Literal["max", "average"]

RESNET18_FORMAT = "sphynx-resnet18/1"
VGG11_FORMAT = "sphynx-vgg11/1"

RESNET_STAGES = ((1, 1), (2, 2), (4, 2), (8, 2))  # (channel multiple, stride of the first block)
VGG11_STAGES = ((1,), (2,), (4, 4), (8, 8), (8, 8))  # channel multiples; a 2x2 pool after each stage
VGG11_HIDDEN = 4096
VGG11_GRID = 7


@dataclass(frozen=True)
class ResNet18Design:
    width: int = 64
    image: Shape = Shape(3, 224, 224)
    classes: int = 1000
    stem: Stem = "imagenet"
    pool: Pool = "max"
    name: str = ""

    def __post_init__(self) -> None:
        _require_positive("ResNet18", self.width, self.classes, *self.image)

    def to_json(self) -> dict[str, Any]:
        return {"format": RESNET18_FORMAT, **asdict(self), "image": list(self.image)}


@dataclass(frozen=True)
class Vgg11Design:
    """Images of at least 32 x 32. Larger than 224 or not, the last map is averaged to a grid of at most 7 x 7."""

    width: int = 64
    image: Shape = Shape(3, 224, 224)
    classes: int = 1000
    hidden: int = VGG11_HIDDEN
    pool: Pool = "max"
    name: str = ""

    def __post_init__(self) -> None:
        _require_positive("VGG11", self.width, self.classes, self.hidden, *self.image)
        if min(self.image.height, self.image.width) < 32:
            raise InputError(
                f"VGG11 halves its input five times; {self.image} is too small",
                remedy="Use images of at least 32x32.",
            )

    def to_json(self) -> dict[str, Any]:
        return {"format": VGG11_FORMAT, **asdict(self), "image": list(self.image)}

    @property
    def grid(self) -> tuple[int, int]:
        """The resolution that enters the dense layers."""
        return min(self.image.height // 32, VGG11_GRID), min(self.image.width // 32, VGG11_GRID)


def account_of_resnet18(design: ResNet18Design) -> Account:
    account = Account()
    tally, width = account.total, design.width
    if design.stem == "imagenet":
        x = tally.relu(tally.batch_norm(tally.convolution(design.image, width, 7, stride=2)))
        x = _pool(tally, design.pool, x, 3, stride=2, padding=1)
    else:
        x = tally.relu(tally.batch_norm(tally.convolution(design.image, width, 3)))
    account.close_row("stem", "conv", x)
    for number, (multiple, first_stride) in enumerate(RESNET_STAGES):
        for block, stride in enumerate((first_stride, 1)):
            x = _basic_block(tally, x, width * multiple, stride)
            account.close_row(f"stage {number}, block {block}", "residual", x)
    tally.linear(tally.global_average_pool(x).channels, design.classes)
    account.close_row("head", "pool + linear", Shape(design.classes, 1, 1))
    return account


def account_of_vgg11(design: Vgg11Design) -> Account:
    account = Account()
    tally, x = account.total, design.image
    for number, multiples in enumerate(VGG11_STAGES):
        for multiple in multiples:
            x = tally.relu(tally.batch_norm(tally.convolution(x, design.width * multiple, 3, bias=True)))
        x = _pool(tally, design.pool, x, 2, stride=2)
        account.close_row(f"stage {number}", f"{len(multiples)} x conv3, pool", x)
    grid = Shape(x.channels, *design.grid)
    if grid != x:
        tally.macs += x.size
    features = grid.size
    for number, outputs in enumerate((design.hidden, design.hidden)):
        features = tally.linear(features, outputs)
        tally.relus += features
        account.close_row(f"dense {number}", "linear", Shape(features, 1, 1))
    tally.linear(features, design.classes)
    account.close_row("head", "linear", Shape(design.classes, 1, 1))
    return account


def _basic_block(tally: Tally, x: Shape, channels: int, stride: int) -> Shape:
    if stride != 1 or x.channels != channels:
        tally.batch_norm(tally.convolution(x, channels, 1, stride=stride, padding=0))
    x = tally.relu(tally.batch_norm(tally.convolution(x, channels, 3, stride=stride)))
    return tally.relu(tally.batch_norm(tally.convolution(x, channels, 3)))


def _pool(tally: Tally, pool: Pool, x: Shape, kernel: int, *, stride: int, padding: int = 0) -> Shape:
    if pool == "max":
        return tally.max_pool(x, kernel, stride=stride, padding=padding)
    return tally.average_pool(x, kernel, stride=stride, padding=padding)


def _require_positive(what: str, *values: int) -> None:
    if min(values) < 1:
        raise InputError(f"{what}: width, classes and image sizes must be at least 1", remedy="Check them.")
