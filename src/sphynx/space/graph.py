"""A network from elsewhere as its fused graph: linear maps, sums, pools and ReLUs, as a design that can be trained.

    linear    the sum of convolutions of earlier tensors, and a bias map
    sum       the sum of elements of earlier tensors, in any order
    pool      sums over windows of rows and columns, times factors
    relu      batch norm, then a ReLU; a comparison of a max pool has no batch norm

Files have their batch norm folded away, and a network without it trains badly; so each ReLU has one again, which at
first changes nothing. `compiler.frontend.graph` makes designs and networks of files and modules, and compiles them.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar, Literal

from sphynx.errors import InputError
from sphynx.record import Record
from sphynx.space.described import Described
from sphynx.space.tally import Account, Shape

INPUT = "pixels"
_REMEDY = "`sphynx reduce` writes such designs of network files; use one unchanged."


@dataclass(frozen=True)
class GraphTerm(Record):
    """A convolution of a source, or, of a sum, elements of it: empty indices stand for whole axes, -1 for nothing."""

    source: str
    kernel: tuple[int, ...] = ()  # outputs, inputs of a group, rows, columns
    stride: int = 1
    dilation: int = 1
    top: int = 0  # padding; negative: the first rows are not read
    left: int = 0
    groups: int = 1
    channels: tuple[int, ...] = ()
    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()
    factor: float = 1.0


@dataclass(frozen=True)
class GraphStep(Record):
    name: str
    kind: Literal["linear", "sum", "pool", "relu", "comparison"]
    shape: Shape
    terms: tuple[GraphTerm, ...]
    bias: tuple[int, ...] = ()  # the shape of what is added: () nothing
    row_windows: tuple[tuple[int, int], ...] = ()  # first row, row after the last
    row_factors: tuple[int, ...] = ()
    column_windows: tuple[tuple[int, int], ...] = ()
    column_factors: tuple[int, ...] = ()


@dataclass(frozen=True)
class GraphDesign(Described):
    FORMAT: ClassVar[str] = "sphynx-graph/1"
    REMEDY: ClassVar[str] = _REMEDY

    image: Shape
    classes: int
    steps: tuple[GraphStep, ...]
    name: str = ""

    def __post_init__(self) -> None:
        known = {INPUT}
        for step in self.steps:
            unknown = {term.source for term in step.terms} - known
            if unknown or not step.terms or step.name in known:
                raise InputError(f"step {step.name} cannot be computed here", where=self.name, remedy=_REMEDY)
            known.add(step.name)
        if not self.steps or self.steps[-1].shape.size != self.classes:
            raise InputError("the last step does not make the logits", where=self.name, remedy=_REMEDY)

    @property
    def account(self) -> Account:
        account = Account()
        tally = account.total
        for step in self.steps:
            pixels = step.shape.height * step.shape.width
            if step.kind == "linear":
                weights = sum(prod(term.kernel) for term in step.terms)
                tally.parameters += weights + prod(step.bias)
                tally.macs += weights * pixels
            elif step.kind == "relu":
                tally.parameters += 2 * step.shape.channels
                tally.relus += step.shape.size
            elif step.kind == "comparison":
                tally.comparisons += step.shape.size
            account.close_row(step.name, step.kind, step.shape)
        return account
