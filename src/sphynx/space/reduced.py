"""Reduced networks: a network of another kind whose ReLUs are, channel by channel or value by value, one of

    r   ReLU        max(x, 0)
    i   identity    x; under the protocol a truncation where ReLUs stand beside it
    0   removed     0; nothing is computed for it
    s   square      a x^2 + b x + c, with coefficients of its channel that are learned

A layer is written as one letter for each channel, or, where they differ within one, as one for each value. No torch.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from sphynx.errors import InputError, join_faults
from sphynx.record import Record, converted
from sphynx.space.described import Described
from sphynx.space.design import Design
from sphynx.space.graph import GraphDesign
from sphynx.space.macro import MacroDesign
from sphynx.space.micro import MicroDesign
from sphynx.space.reference import ResNet18Design, Vgg11Design, WideResNetDesign
from sphynx.space.stream import StreamDesign
from sphynx.space.tally import Account, Shape

RELU, IDENTITY, REMOVED, SQUARE = "r", "i", "0", "s"
KINDS = (RELU, IDENTITY, REMOVED, SQUARE)
COEFFICIENTS = 3  # of a channel's square
MOST_VALUES = 1 << 26  # of a layer; a file that asks for more is not one of ours

BaseDesign = (
    Design | StreamDesign | GraphDesign | MacroDesign | MicroDesign | ResNet18Design | Vgg11Design | WideResNetDesign
)
_REMEDY = "`sphynx reduce` writes such designs; use one unchanged."


@dataclass(frozen=True)
class NonlinearCounts(Record):
    """Counts of one inference beside its linear maps, in values. `truncations` are what identities need at most: a
    layer without a ReLU or square needs none of its own."""

    relus: int = 0
    comparisons: int = 0  # of max pools
    squares: int = 0
    truncations: int = 0

    def __add__(self, other: NonlinearCounts) -> NonlinearCounts:
        return NonlinearCounts(
            self.relus + other.relus,
            self.comparisons + other.comparisons,
            self.squares + other.squares,
            self.truncations + other.truncations,
        )


@dataclass(frozen=True)
class Activations:
    """One rectified layer of the base network, after its reduction."""

    layer: str  # as the base network's modules are called
    shape: Shape
    kinds: str  # a letter for each channel, or for each value in the order of channels, rows and columns

    def __post_init__(self) -> None:
        """Write a channel whose values are all of one kind as one letter."""
        if self.shape.size == len(self.kinds) != self.shape.channels:
            pixels = self.shape.height * self.shape.width
            runs = [self.kinds[first : first + pixels] for first in range(0, len(self.kinds), pixels)]
            if all(run == run[0] * pixels for run in runs):
                object.__setattr__(self, "kinds", "".join(run[0] for run in runs))

    @property
    def is_per_value(self) -> bool:
        return len(self.kinds) != self.shape.channels

    @cached_property
    def counts(self) -> NonlinearCounts:
        each = 1 if self.is_per_value else self.shape.height * self.shape.width
        relus, passed, squares = (each * self.kinds.count(kind) for kind in (RELU, IDENTITY, SQUARE))
        return NonlinearCounts(relus=relus, squares=squares, truncations=passed if relus or squares else 0)

    @property
    def coefficients(self) -> int:
        return COEFFICIENTS * self.shape.channels if SQUARE in self.kinds else 0

    def faults(self) -> list[str]:
        if min(self.shape) < 1 or self.shape.size > MOST_VALUES:
            return [f"{self.layer} is {self.shape}"]
        if len(self.kinds) not in (self.shape.channels, self.shape.size):
            return [f"{self.layer} has {len(self.kinds)} letters, not one for each channel or value of {self.shape}"]
        unknown = sorted(set(self.kinds) - set(KINDS))
        return [f"{self.layer} has the letter {unknown[0]!r}, which is not one of {' '.join(KINDS)}"] if unknown else []

    def to_json(self) -> dict[str, Any]:
        packed = base64.b64encode(zlib.compress(self.kinds.encode())).decode()
        kinds = {"values": packed} if self.is_per_value else {"channels": self.kinds}
        return {"layer": self.layer, "shape": list(self.shape), **kinds}

    @classmethod
    def from_json(cls, data: Any) -> Activations:
        try:
            shape = converted(Shape, data["shape"])
            if "channels" in data:
                return cls(converted(str, data["layer"]), shape, converted(str, data["channels"]))
            packed = base64.b64decode(data["values"], validate=True)
            kinds = zlib.decompressobj().decompress(packed, max_length=min(max(shape.size, 0), MOST_VALUES) + 1)
            return cls(converted(str, data["layer"]), shape, kinds.decode("ascii"))
        except (TypeError, KeyError, ValueError, zlib.error):
            raise ValueError("expected a layer, its shape and its letters") from None


@dataclass(frozen=True)
class ReducedDesign(Described):
    """A trained network's design with what became of its ReLUs (docs/reduce.md).

    >>> network = sphynx.load_network("runs/fewer")  # doctest: +SKIP
    >>> network.design.counts.relus, network.design.counts.truncations  # doctest: +SKIP
    """

    FORMAT: ClassVar[str] = "sphynx-reduced/1"
    REMEDY: ClassVar[str] = _REMEDY

    base: BaseDesign
    layers: tuple[Activations, ...]
    name: str = ""

    def __post_init__(self) -> None:
        faults = [fault for layer in self.layers for fault in layer.faults()]
        if len({layer.layer for layer in self.layers}) < len(self.layers):
            faults.append("a layer is named twice")
        if faults:
            raise InputError(join_faults(faults), where=self.name or "reduced design", remedy=_REMEDY)

    @property
    def image(self) -> Shape:
        return self.base.image

    @property
    def classes(self) -> int:
        return self.base.classes

    @property
    def counts(self) -> NonlinearCounts:
        pools = NonlinearCounts(comparisons=self.base.account.total.comparisons)
        return sum((layer.counts for layer in self.layers), pools)

    @property
    def account(self) -> Account:
        """The base network's linear maps, then a row for each layer of activations."""
        account, base = Account(), self.base.account.total
        total = account.total
        total.parameters, total.macs, total.comparisons = base.parameters, base.macs, base.comparisons
        account.close_row("network", "all maps", Shape(self.classes, 1, 1))
        for layer in self.layers:
            total.relus += layer.counts.relus
            total.parameters += layer.coefficients
            account.close_row(layer.layer, _summary(layer), layer.shape)
        return account


def _summary(layer: Activations) -> str:
    words = {RELU: "ReLU", IDENTITY: "identity", REMOVED: "removed", SQUARE: "square"}
    unit = "values" if layer.is_per_value else "channels"
    found = [f"{layer.kinds.count(kind)} {word}" for kind, word in words.items() if kind in layer.kinds]
    return f"{unit}: {', '.join(found)}"
