"""Stream networks: a linear stream of W channels runs through the whole network, and nothing on it is rectified.

    stem     s = BN(conv5x5(image -> W)), with stride
    block    s <- s + BN(conv3x3(ReLU(BN(conv3x3(s -> C))) -> W))        only the C channels of a block are rectified
    reduce   s <- BN(conv3x3/2(s -> W'))                                 between two stages; linear
    head     linear(mean over the pixels of s)

A stage is a width W and the C of each of its blocks; its map is half as high and wide as that of the stage before. A
network has the sum of C h w ReLUs over its blocks: W costs none, so that C may be far smaller than W.

`borders` says what a convolution meets beyond the map. "zero" pads each of them. "halo" keeps the stream on a map
that reaches e pixels beyond [0, h) on every side (1 in the last stage, e <- 2e + 1 before it), so far that nothing
of what a block adds is ever cut off: then all that lies between two ReLUs is exactly one convolution per earlier
ReLU layer. Batch statistics and the head's mean are of the inside [0, h) in both forms.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, get_args

from sphynx.errors import InputError, join_faults
from sphynx.record import Record
from sphynx.space.choices import Borders
from sphynx.space.described import Described
from sphynx.space.tally import Account, Shape, Tally

STEM_KERNEL, KERNEL = 5, 3
STEM_STRIDES = (1, 2, 4)
MOST_BLOCKS = 10_000  # that a stage is written with: 12x100000000 would fill the memory

_REMEDY = "`sphynx plan --family stream` lists working designs; `sphynx show DESIGN --json` prints one as a file."
_NOTATION = "Write stages as map:W:C,C,... such as 16:64:12 8:128:56x3 4:256:256x2,216."


@dataclass(frozen=True)
class Stage(Record):
    width: int  # W, the stream's channels
    channels: tuple[int, ...]  # C of each block; a stage without blocks only reduces


@dataclass(frozen=True)
class StreamDesign(Described):
    """A network of residual blocks around a linear stream (docs/stream.md): its stages, one for each size of map.

    >>> design = sphynx.plan("12.8k", family="stream", image=(3, 32, 32), classes=100).design
    >>> design.save("stream.json")
    >>> sphynx.StreamDesign.load("stream.json") == design
    True
    """

    FORMAT: ClassVar[str] = "sphynx-stream/1"
    REMEDY: ClassVar[str] = _REMEDY

    stages: tuple[Stage, ...]
    image: Shape = Shape(3, 32, 32)
    classes: int = 100
    stem_stride: int = 2
    borders: Borders = "halo"
    name: str = ""

    def __post_init__(self) -> None:
        faults = _faults(self)
        if faults:
            raise InputError(join_faults(faults), where=self.name or "stream design", remedy=_REMEDY)

    @property
    def maps(self) -> tuple[Shape, ...]:
        """The inside of each stage's stream."""
        height, width = (-(-n // self.stem_stride) for n in self.image[1:])
        found = []
        for stage in self.stages:
            found.append(Shape(stage.width, height, width))
            height, width = -(-height // 2), -(-width // 2)
        return tuple(found)

    @property
    def halos(self) -> tuple[int, ...]:
        """How far each stage's stream reaches beyond its inside."""
        if self.borders == "zero":
            return (0,) * len(self.stages)
        return tuple(2 ** (len(self.stages) - number) - 1 for number in range(len(self.stages)))

    @property
    def stem_padding(self) -> int:
        return self.stem_stride * self.halos[0] + STEM_KERNEL // 2

    @property
    def blocks(self) -> int:
        return sum(len(stage.channels) for stage in self.stages)

    @property
    def relus(self) -> int:
        return sum(
            channels * place.height * place.width
            for stage, place in zip(self.stages, self.maps, strict=True)
            for channels in stage.channels
        )

    @property
    def account(self) -> Account:
        return account_of_stream(self)

    def __str__(self) -> str:
        """The stages as `stages_from_text` reads them."""
        return " ".join(
            f"{place.height}:{stage.width}:{_runs(stage.channels)}"
            for stage, place in zip(self.stages, self.maps, strict=True)
        )


def account_of_stream(design: StreamDesign) -> Account:
    """The exact account from the design alone: a row per stem, block, reduction and head."""
    account, halo = Account(), design.borders == "halo"
    tally, maps = account.total, design.maps
    first = design.stages[0].width
    s = _conv_norm(tally, design.image, first, STEM_KERNEL, design.stem_stride, design.stem_padding)
    account.close_row("stem", f"conv{STEM_KERNEL}, stride {design.stem_stride}", s)
    for number, (stage, inside) in enumerate(zip(design.stages, maps, strict=True)):
        if number:
            s = _conv_norm(tally, s, stage.width, KERNEL, 2, 0 if halo else 1)
            account.close_row(f"reduce {number}", f"conv{KERNEL}, stride 2", s)
        for block, channels in enumerate(stage.channels):
            rectified = tally.relu(tally.batch_norm(tally.convolution(inside, channels, KERNEL)))
            _conv_norm(tally, rectified, stage.width, KERNEL, 1, 2 if halo else 1)
            account.close_row(f"stage {number}, block {block}", f"C = {channels}", s)
    tally.linear(tally.global_average_pool(maps[-1]).channels, design.classes)
    account.close_row("head", "mean + linear", Shape(design.classes, 1, 1))
    return account


def _conv_norm(tally: Tally, x: Shape, channels: int, kernel: int, stride: int, padding: int) -> Shape:
    return tally.batch_norm(tally.convolution(x, channels, kernel, stride=stride, padding=padding))


def stages_from_text(text: str, image: Shape) -> tuple[tuple[Stage, ...], int]:
    """`16:64:12 8:128:56x3 4:256:256x2,216` as stages and the stem's stride. The maps must halve one another."""
    stages, sizes = [], []
    for part in text.split():
        match = re.fullmatch(r"(\d+):(\d+):((?:\d+(?:x\d+)?(?:,\d+(?:x\d+)?)*)?)", part)
        if match is None:
            raise InputError(f"{part!r} is not a stage", where=text, remedy=_NOTATION)
        channels: list[int] = []
        for run in filter(None, match[3].split(",")):
            value, _, times = run.partition("x")
            if len(times) > len(str(MOST_BLOCKS)) or len(channels) + int(times or 1) > MOST_BLOCKS:
                raise InputError(f"{part!r} has more than {MOST_BLOCKS} blocks", where=text, remedy=_NOTATION)
            channels += [int(value)] * int(times or 1)
        sizes.append(int(match[1]))
        stages.append(Stage(int(match[2]), tuple(channels)))
    strides = [stride for stride in STEM_STRIDES if sizes and -(-image.height // stride) == sizes[0]]
    if not strides or any(after != -(-before // 2) for before, after in pairwise(sizes)):
        raise InputError(
            f"the maps {', '.join(map(str, sizes)) or '(none)'} do not fit {image} images",
            where=text,
            remedy=f"The first map is the image's size over {' or '.join(map(str, STEM_STRIDES))}, each further one "
            f"half of the one before. {_NOTATION}",
        )
    return tuple(stages), strides[0]


def _runs(channels: Sequence[int]) -> str:
    """(256, 256, 216) -> 256x2,216"""
    runs: list[tuple[int, int]] = []
    for value in channels:
        if runs and runs[-1][0] == value:
            runs[-1] = value, runs[-1][1] + 1
        else:
            runs.append((value, 1))
    return ",".join(f"{value}x{times}" if times > 1 else str(value) for value, times in runs)


def _faults(design: StreamDesign) -> list[str]:
    faults = []
    if not design.stages:
        return ["there are no stages"]
    if design.borders not in get_args(Borders):
        faults.append(f"borders must be one of {', '.join(get_args(Borders))}, not {design.borders!r}")
    if design.stem_stride not in STEM_STRIDES:
        faults.append(f"stem_stride must be one of {', '.join(map(str, STEM_STRIDES))}, not {design.stem_stride!r}")
    if min(design.classes, *design.image) < 1:
        faults.append("classes and image sizes must be at least 1")
    for number, stage in enumerate(design.stages):
        if min(stage.width, *stage.channels, stage.width) < 1:
            faults.append(f"stage {number} is {stage.width}:{_runs(stage.channels)}; W and every C must be at least 1")
    if not faults and not design.blocks:
        faults.append("no stage has a block, so the network would be linear")
    if not faults and len(design.stages) > 1 and max(design.maps[-2][1:]) == 1:
        faults.append(f"{len(design.stages)} stages halve {design.image} images beyond a single pixel")
    return faults
