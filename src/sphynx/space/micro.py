"""The original micro-search network (DARTS, Liu et al. 2019) and its exact account: what Sphynx is compared with.

Convolutions are ReLU-Conv-BN, each cell input passes a ReLU-Conv1x1-BN, a cell's output is the concatenation of its
intermediate nodes. Two savings that the Sphynx paper's ablation grants it: `share_relus` computes the ReLU of a node
once for all convolutions that read it, and `preprocessing_relus` says which ReLUs in front of the cells stay: all of
them, those of factorized reductions only, or none. It has the same JSON face as a `Design`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from sphynx.errors import InputError, join_faults
from sphynx.space.cell import INPUT_NODES, Edge
from sphynx.space.choices import Balancing
from sphynx.space.described import Described
from sphynx.space.design import CHANNEL_FACTOR, default_reduce_positions
from sphynx.space.genotype import Genotype
from sphynx.space.tally import Account, Shape, Tally

PreprocessingRelus = Literal["all", "reductions", "none"]


@dataclass(frozen=True)
class MicroDesign(Described):
    FORMAT: ClassVar[str] = "sphynx-micro/1"
    genotype: Genotype
    channels: int
    depth: int
    image: Shape = Shape(3, 32, 32)
    classes: int = 100
    balancing: Balancing = "flop"
    share_relus: bool = False
    preprocessing_relus: PreprocessingRelus = "all"
    name: str = ""

    def __post_init__(self) -> None:
        faults = []
        if self.genotype.space != "micro":
            faults.append(f"genotype {self.genotype.name!r} is not of the micro space")
        if min(self.channels, self.depth, self.classes, *self.image) < 1:
            faults.append("channels, depth, classes and image sizes must be at least 1")
        if faults:
            raise InputError(join_faults(faults), where="micro design", remedy="Use a DARTS or PC-DARTS genotype.")

    @property
    def reduce_positions(self) -> tuple[int, ...]:
        return default_reduce_positions(self.depth)

    def cell_channels(self, position: int) -> int:
        reductions = sum(p <= position for p in self.reduce_positions)
        return int(self.channels * CHANNEL_FACTOR[self.balancing] ** reductions)

    def older_input_is_larger(self, position: int) -> bool:
        return position - 1 in self.reduce_positions

    def older_input_has_relu(self, position: int) -> bool:
        if self.preprocessing_relus == "reductions":
            return self.older_input_is_larger(position)
        return self.preprocessing_relus == "all"

    @property
    def account(self) -> Account:
        return account_of_micro(self)


def reads_through_relu(edge: Edge, stride: int) -> bool:
    """Return whether an edge's module starts with a ReLU: every convolution does, and a strided skip's reduction."""
    return edge.operation.startswith("sep") or (edge.operation == "skip" and stride == 2)


def account_of_micro(design: MicroDesign) -> Account:
    account = Account()
    tally = account.total
    older = newer = tally.batch_norm(tally.convolution(design.image, 3 * design.channels, 3))
    account.close_row("stem", "conv3", newer)
    for position in range(design.depth):
        out = _cell(tally, design, position, older, newer)
        kind = "reduce" if position in design.reduce_positions else "normal"
        account.close_row(f"cell {position}", kind, out)
        older, newer = newer, out
    tally.linear(tally.global_average_pool(newer).channels, design.classes)
    account.close_row("head", "pool + linear", Shape(design.classes, 1, 1))
    return account


def _cell(tally: Tally, design: MicroDesign, position: int, older: Shape, newer: Shape) -> Shape:
    channels = design.cell_channels(position)
    reducing = position in design.reduce_positions
    if design.older_input_has_relu(position):
        tally.relu(older)
    if design.preprocessing_relus == "all":
        tally.relu(newer)
    if design.older_input_is_larger(position):
        first = tally.factorized_reduction(older, channels, affine=True)
    else:
        first = tally.batch_norm(tally.convolution(older, channels, 1))
    nodes = [first, tally.batch_norm(tally.convolution(newer, channels, 1))]
    shared: set[int] = set()
    for edges in design.genotype.reduce if reducing else design.genotype.normal:
        out = first
        for edge in edges:
            stride = 2 if reducing and edge.source < INPUT_NODES else 1
            x = nodes[edge.source]
            if reads_through_relu(edge, stride) and not (design.share_relus and edge.source in shared):
                tally.relu(x)
                shared.add(edge.source)
            out = _after_relu(tally, edge.operation, x, stride)
        nodes.append(out)
    return nodes[-1].with_channels(channels * (len(nodes) - INPUT_NODES))


def _after_relu(tally: Tally, operation: str, x: Shape, stride: int) -> Shape:
    if operation == "max_pool":
        return tally.max_pool(x, 3, stride=stride, padding=1)
    if operation == "avg_pool":
        return tally.average_pool(x, 3, stride=stride, padding=1)
    if operation == "skip":
        return x if stride == 1 else tally.factorized_reduction(x, x.channels, affine=True)
    kernel = int(operation[-1])
    dilation = 2 if operation.startswith("sep_dil") else 1
    x = _depthwise_pointwise(tally, x, kernel, stride, dilation)
    if dilation == 1:  # A separable convolution is applied twice, a dilated one once.
        x = _depthwise_pointwise(tally, tally.relu(x), kernel, 1, 1)
    return x


def _depthwise_pointwise(tally: Tally, x: Shape, kernel: int, stride: int, dilation: int) -> Shape:
    x = tally.convolution(x, x.channels, kernel, stride=stride, dilation=dilation, groups=x.channels)
    return tally.batch_norm(tally.convolution(x, x.channels, 1))
