"""Stream networks: a linear stream of W channels runs through the whole network, and nothing on it is rectified.

    stem     s = BN(conv KxK / S (image -> W)), K = 5 unless said otherwise
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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, get_args

from sphynx.errors import InputError, join_faults
from sphynx.record import Record
from sphynx.space.choices import Borders
from sphynx.space.described import Described
from sphynx.space.tally import Account, Shape, Tally

STEM_KERNEL, KERNEL = 5, 3
MOST_STEM_KERNEL = 63
MOST_BLOCKS = 10_000  # that a stage is written with: 12x100000000 would fill the memory

_REMEDY = "`sphynx plan --family stream` lists working designs; `sphynx show DESIGN --json` prints one as a file."
_NOTATION = (
    "Write stages as map:W:C,C,... such as 16:64:12 8:128:56x3 4:256:256x2,216; before them, where it is not 5x5, the "
    "stem as kernel/stride: 9x9/4 32:48:4 16:96:12."
)


@dataclass(frozen=True)
class Stage(Record):
    width: int  # W, the stream's channels
    channels: tuple[int, ...]  # C of each block; a stage without blocks only reduces


class Stem(NamedTuple):
    kernel: int  # K; odd
    stride: int

    def __str__(self) -> str:
        return f"{self.kernel}x{self.kernel}/{self.stride}"


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
    FILE_DEFAULTS: ClassVar[Mapping[str, Any]] = {"name": "", "stem_kernel": STEM_KERNEL}

    stages: tuple[Stage, ...]
    image: Shape = Shape(3, 32, 32)
    classes: int = 100
    stem_stride: int = 2
    borders: Borders = "halo"
    name: str = ""
    stem_kernel: int = STEM_KERNEL

    def __post_init__(self) -> None:
        faults = _faults(self)
        if faults:
            raise InputError(join_faults(faults), where=self.name or "stream design", remedy=_REMEDY)

    def to_json(self) -> dict[str, Any]:
        """As the fields are, but for a stem of 5x5: designs from before there were others keep their fingerprint."""
        values = super().to_json()
        if self.stem_kernel == STEM_KERNEL:
            del values["stem_kernel"]
        return values

    @property
    def stem(self) -> Stem:
        return Stem(self.stem_kernel, self.stem_stride)

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
        return self.stem_stride * self.halos[0] + self.stem_kernel // 2

    @property
    def reduction_padding(self) -> int:
        return 0 if self.borders == "halo" else 1

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
        """The stages as `stages_from_text` reads them, behind the stem where it is not 5x5 of the least stride."""
        stages = " ".join(
            f"{place.height}:{stage.width}:{_runs(stage.channels)}"
            for stage, place in zip(self.stages, self.maps, strict=True)
        )
        return stages if self.stem == _usual_stem(self.image, self.maps[0].height) else f"{self.stem} {stages}"


def account_of_stream(design: StreamDesign) -> Account:
    """The exact account from the design alone: a row per stem, block, reduction and head."""
    account, halo = Account(), design.borders == "halo"
    tally, maps = account.total, design.maps
    first = design.stages[0].width
    s = _conv_norm(tally, design.image, first, design.stem_kernel, design.stem_stride, design.stem_padding)
    account.close_row("stem", f"conv{design.stem_kernel}, stride {design.stem_stride}", s)
    for number, (stage, inside) in enumerate(zip(design.stages, maps, strict=True)):
        if number:
            s = _conv_norm(tally, s, stage.width, KERNEL, 2, design.reduction_padding)
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


def stages_from_text(text: str, image: Shape) -> tuple[tuple[Stage, ...], Stem]:
    """`16:64:12 8:128:56x3 4:256:256x2,216` as stages and the stem: 5x5 unless `9x9/4` stands before them. The maps
    must halve one another, rounded up."""
    stages, sizes = [], []
    written, parts = re.match(r"\s*(\d{1,3})x(\d{1,3})/(\d{1,4})\s", text), text.split()
    if written and written[1] == written[2]:
        parts = parts[1:]
    for part in parts:
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
    stem = Stem(int(written[1]), int(written[3])) if written else _usual_stem(image, sizes[0] if sizes else 0)
    fits = stem is not None and stem.stride > 0 and sizes and -(-image.height // stem.stride) == sizes[0]
    if stem is None or not fits or any(after != -(-before // 2) for before, after in pairwise(sizes)):
        raise InputError(
            f"the maps {', '.join(map(str, sizes)) or '(none)'} do not fit {image} images",
            where=text,
            remedy="The first map is the image's size over the stem's stride, each further one half of the one before, "
            f"both rounded up. {_NOTATION}",
        )
    return tuple(stages), stem


def _usual_stem(image: Shape, first_map: int) -> Stem | None:
    """The stem of the least stride that makes this map; None where no stride does."""
    strides = range(1, image.height + 1)
    return next((Stem(STEM_KERNEL, stride) for stride in strides if -(-image.height // stride) == first_map), None)


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
    if design.stem_kernel % 2 == 0 or not 1 <= design.stem_kernel <= MOST_STEM_KERNEL:
        faults.append(f"stem_kernel must be odd, from 1 to {MOST_STEM_KERNEL}, not {design.stem_kernel!r}")
    if not 1 <= design.stem_stride <= design.stem_kernel:
        faults.append(
            f"stem_stride must be from 1 to stem_kernel = {design.stem_kernel}, or pixels stay unread, not "
            f"{design.stem_stride!r}"
        )
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
