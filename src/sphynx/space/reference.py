"""Exact accounts of the reference networks: ResNet18 (He et al. 2016), VGG11 with batch norm (Simonyan 2015) and wide
residual networks (Zagoruyko & Komodakis 2016), the teachers.

They have the same JSON face as a `Design`, so that they can be trained, saved and compared in the same way.
`width` is the number of channels of the first stage (64 in the originals), of a wide residual network the factor on
16, 32 and 64. `network.reference` builds the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from sphynx.errors import InputError
from sphynx.space.choices import Pool, Stem
from sphynx.space.described import Described
from sphynx.space.tally import Account, Shape, Tally

RESNET_STAGES = ((1, 1), (2, 2), (4, 2), (8, 2))  # (channel multiple, stride of the first block)
VGG11_STAGES = ((1,), (2,), (4, 4), (8, 8), (8, 8))  # channel multiples; a 2x2 pool after each stage
WIDE_RESNET_STEM = 16
WIDE_RESNET_STAGES = ((16, 1), (32, 2), (64, 2))  # (channels before the factor, stride of the first block)
VGG11_HIDDEN = 4096
VGG11_GRID = 7


@dataclass(frozen=True)
class ResNet18Design(Described):
    FORMAT: ClassVar[str] = "sphynx-resnet18/1"
    width: int = 64
    image: Shape = Shape(3, 224, 224)
    classes: int = 1000
    stem: Stem = "imagenet"
    pool: Pool = "max"
    name: str = ""

    def __post_init__(self) -> None:
        _require_positive("ResNet18", self.width, self.classes, *self.image)

    @property
    def account(self) -> Account:
        return account_of_resnet18(self)


@dataclass(frozen=True)
class Vgg11Design(Described):
    """Images of at least 32 x 32. Larger than 224 or not, the last map is averaged to a grid of at most 7 x 7."""

    FORMAT: ClassVar[str] = "sphynx-vgg11/1"
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

    @property
    def account(self) -> Account:
        return account_of_vgg11(self)

    @property
    def grid(self) -> tuple[int, int]:
        """The resolution that enters the dense layers."""
        return min(self.image.height // 32, VGG11_GRID), min(self.image.width // 32, VGG11_GRID)


@dataclass(frozen=True)
class WideResNetDesign(Described):
    """WRN-depth-width: (depth - 4) / 6 blocks of two convolutions in each of three stages; ReLUs before them."""

    FORMAT: ClassVar[str] = "sphynx-wide-resnet/1"
    depth: int = 28
    width: int = 10
    image: Shape = Shape(3, 32, 32)
    classes: int = 100
    name: str = ""

    def __post_init__(self) -> None:
        _require_positive("a wide residual network", self.width, self.classes, *self.image)
        if self.depth < 10 or (self.depth - 4) % 6:
            raise InputError(
                f"a wide residual network has 6n + 4 layers, not {self.depth}",
                remedy="Give a depth such as 10, 16, 22, 28, 34 or 40.",
            )

    @property
    def blocks_per_stage(self) -> int:
        return (self.depth - 4) // 6

    @property
    def account(self) -> Account:
        return account_of_wide_resnet(self)


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


def account_of_wide_resnet(design: WideResNetDesign) -> Account:
    account = Account()
    tally = account.total
    x = tally.convolution(design.image, WIDE_RESNET_STEM, 3)
    account.close_row("stem", "conv", x)
    for number, (channels, first_stride) in enumerate(WIDE_RESNET_STAGES):
        for block in range(design.blocks_per_stage):
            x = _wide_block(tally, x, channels * design.width, 1 if block else first_stride)
            account.close_row(f"stage {number}, block {block}", "residual", x)
    tally.relu(tally.batch_norm(x))
    tally.linear(tally.global_average_pool(x).channels, design.classes)
    account.close_row("head", "ReLU, pool + linear", Shape(design.classes, 1, 1))
    return account


def _wide_block(tally: Tally, x: Shape, channels: int, stride: int) -> Shape:
    tally.relu(tally.batch_norm(x))
    if stride != 1 or x.channels != channels:
        tally.convolution(x, channels, 1, stride=stride, padding=0)
    x = tally.convolution(x, channels, 3, stride=stride)
    return tally.convolution(tally.relu(tally.batch_norm(x)), channels, 3)


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
        raise InputError(f"{what}: width, classes and image sizes must be at least 1", remedy="Correct these values.")
