"""A design: everything that says which Sphynx network to build. The artifact `design.json`.

    genotype + channels (the paper's C) + depth (D) + reduce positions + image shape + classes  ->  one network

ReLU balancing multiplies the channels by 4 at each reduce cell, so every cell has H0*W0*C ReLUs and a network with the
small-image stem has exactly H0*W0*C*D. FLOP balancing multiplies by 2 (the paper's ablation).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from sphynx.errors import InputError, join_faults
from sphynx.space.account import account_of
from sphynx.space.choices import IMAGENET_STEM_FROM, Balancing, Convolution, ConvStack, Stem, StemChoice
from sphynx.space.described import Described
from sphynx.space.genotype import Genotype
from sphynx.space.notebook import table_html
from sphynx.space.tally import Account, Shape

CHANNEL_FACTOR: dict[Balancing, int] = {"relu": 4, "flop": 2}

_REMEDY = "`sphynx plan` lists working designs; `sphynx show DESIGN --json` prints one as a file."


@dataclass(frozen=True)
class Design(Described):
    """A Sphynx network: its cells, channels C and depth D, and where the picture is halved.

    >>> design = sphynx.Design(sphynx.find_cells("sphynx"), channels=5, depth=5, reduce_positions=(0, 1))
    >>> design.relus, design.parameters
    (25600, ...)
    """

    FORMAT: ClassVar[str] = "sphynx-design/1"
    REMEDY: ClassVar[str] = _REMEDY
    # A file that does not name its stacks is the paper's network.
    FILE_DEFAULTS: ClassVar[Mapping[str, Any]] = {"name": "", "conv_stack": "paper"}

    genotype: Genotype
    channels: int
    depth: int
    reduce_positions: tuple[int, ...]
    image: Shape = Shape(3, 32, 32)
    classes: int = 100
    stem: Stem = "small"
    balancing: Balancing = "relu"
    conv_stack: ConvStack = "single"  # as the verbs make it; the paper's is asked for by name
    convolution: Convolution = "vanilla"
    inner_relus: bool = False
    name: str = ""

    def __post_init__(self) -> None:
        faults = _faults(self)
        if faults:
            raise InputError(join_faults(faults), where=self.name or "design", remedy=_REMEDY)

    @property
    def feature_map(self) -> Shape:
        """The shape that enters cell 0 at full resolution: H0 x W0 and the stem's channels."""
        if self.stem == "imagenet":
            return Shape(self.channels, *(_eighth(n) for n in (self.image.height, self.image.width)))
        return self.image.with_channels(3 * self.channels)

    def cell_channels(self, position: int) -> int:
        reductions = sum(p <= position for p in self.reduce_positions)
        return int(self.channels * CHANNEL_FACTOR[self.balancing] ** reductions)

    def older_input_is_larger(self, position: int) -> bool:
        """Return whether the output of cell k-2 still has the resolution before a reduction at cell k-1."""
        if position == 0:
            return self.stem == "imagenet"
        return position - 1 in self.reduce_positions

    @property
    def account(self) -> Account:
        return account_of(self)

    def _repr_html_(self) -> str:
        rows = {
            "input": f"{self.image}, {self.classes} classes",
            "channels, depth": f"C = {self.channels}, D = {self.depth}",
            "reduce cells at": ", ".join(map(str, self.reduce_positions)),
            "ReLUs": f"{self.relus:,}",
            "parameters": f"{self.parameters:,}",
            "multiply-accumulates": f"{self.macs:,}",
        }
        return table_html(rows) + self.genotype._repr_html_()


def default_reduce_positions(depth: int) -> tuple[int, ...]:
    """D/3 and 2D/3, the places that conventional cell search fixes; one place only where the two fall together."""
    return tuple(sorted({depth // 3, 2 * depth // 3}))


def parse_positions(text: str) -> tuple[int, ...]:
    """`0,1` -> (0, 1)"""
    try:
        return tuple(int(part) for part in text.split(",") if part.strip())
    except ValueError:
        raise InputError(
            f"{text!r} are not valid positions", where="`reduce_at`", remedy="Write them as 0,1."
        ) from None


def stem_for(choice: StemChoice, image_size: int) -> Stem:
    if choice == "auto":
        return "imagenet" if image_size >= IMAGENET_STEM_FROM else "small"
    return choice


def _eighth(length: int) -> int:
    for _ in range(3):
        length = (length + 1) // 2
    return length


def _faults(design: Design) -> list[str]:
    faults = []
    for label, value in (
        ("channels", design.channels),
        ("depth", design.depth),
        ("classes", design.classes),
        ("image channels", design.image.channels),
        ("image height", design.image.height),
        ("image width", design.image.width),
    ):
        if value < 1:
            faults.append(f"{label} must be at least 1, not {value}")
    for label, chosen, allowed in (
        ("stem", design.stem, get_args(Stem)),
        ("balancing", design.balancing, get_args(Balancing)),
        ("conv_stack", design.conv_stack, get_args(ConvStack)),
        ("convolution", design.convolution, get_args(Convolution)),
    ):
        if chosen not in allowed:
            faults.append(f"{label} must be one of {', '.join(allowed)}, not {chosen!r}")
    if design.genotype.space != "sphynx":
        faults.append(f"genotype {design.genotype.name!r} is of the {design.genotype.space} space; convert it first")
    positions = design.reduce_positions
    for position in positions:
        if not 0 <= position < design.depth:
            faults.append(f"reduce position {position} is outside 0 .. {design.depth - 1} (depth {design.depth})")
    repeated = sorted({p for p in positions if positions.count(p) > 1})
    for position in repeated:
        faults.append(f"reduce position {position} is given twice")
    if not repeated and list(positions) != sorted(positions):
        faults.append(f"reduce positions {positions} are not in ascending order")
    if design.stem == "imagenet" and design.channels < 2:
        faults.append("the ImageNet stem starts with C/2 channels: channels must be at least 2")
    return faults
