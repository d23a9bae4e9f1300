"""The exact account of a Sphynx network from its design alone: a row per stem, cell and head.

`network.builder` builds the same network in torch; the tests hold the two equal, count by count.
"""

from __future__ import annotations

from typing import Protocol

from sphynx.space.cell import INPUT_NODES
from sphynx.space.choices import Convolution, ConvStack, Stem
from sphynx.space.genotype import Genotype
from sphynx.space.operations import tally_operation
from sphynx.space.tally import Account, Shape, Tally


class CellNetwork(Protocol):
    """The part of a design that counting needs."""

    @property
    def genotype(self) -> Genotype: ...
    @property
    def channels(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def reduce_positions(self) -> tuple[int, ...]: ...
    @property
    def image(self) -> Shape: ...
    @property
    def classes(self) -> int: ...
    @property
    def stem(self) -> Stem: ...
    @property
    def conv_stack(self) -> ConvStack: ...
    @property
    def convolution(self) -> Convolution: ...
    @property
    def inner_relus(self) -> bool: ...
    def cell_channels(self, position: int) -> int: ...
    def older_input_is_larger(self, position: int) -> bool: ...


def account_of(design: CellNetwork) -> Account:
    account = Account()
    older, newer = _stem(account, design)
    for position in range(design.depth):
        reducing = position in design.reduce_positions
        out = _cell(account.total, design, position, older, newer)
        account.close_row(f"cell {position}", "reduce" if reducing else "normal", out)
        older, newer = newer, out
    features = account.total.global_average_pool(newer)
    account.total.linear(features.channels, design.classes)
    account.close_row("head", "pool + linear", Shape(design.classes, 1, 1))
    return account


def relu_count(design: CellNetwork) -> int:
    return account_of(design).total.relus


def _stem(account: Account, design: CellNetwork) -> tuple[Shape, Shape]:
    """The two maps that cell 0 reads."""
    tally, C = account.total, design.channels
    if design.stem == "small":
        out = tally.batch_norm(tally.convolution(design.image, 3 * C, 3))
        account.close_row("stem", "conv3", out)
        return out, out
    half = tally.batch_norm(tally.convolution(design.image, C // 2, 3, stride=2))
    quarter = tally.batch_norm(tally.convolution(tally.relu(half), C, 3, stride=2))
    eighth = tally.batch_norm(tally.convolution(tally.relu(quarter), C, 3, stride=2))
    account.close_row("stem", "3 x conv3, stride 2", eighth)
    return quarter, eighth


def _cell(tally: Tally, design: CellNetwork, position: int, older: Shape, newer: Shape) -> Shape:
    channels = design.cell_channels(position)
    reducing = position in design.reduce_positions
    if design.older_input_is_larger(position):
        first = tally.factorized_reduction(older, channels, affine=False)
    else:
        first = tally.batch_norm(tally.convolution(older, channels, 1), affine=False)
    second = tally.batch_norm(tally.convolution(newer, channels, 1), affine=False)
    nodes = [first, second]
    for edges in design.genotype.reduce if reducing else design.genotype.normal:
        out = first
        for edge in edges:
            out = tally_operation(
                tally,
                edge.operation,
                nodes[edge.source],
                stride=2 if reducing and edge.source < INPUT_NODES else 1,
                conv_stack=design.conv_stack,
                convolution=design.convolution,
                inner_relus=design.inner_relus,
            )
        nodes.append(out)
    joined = nodes[-1].with_channels(channels * (len(nodes) - INPUT_NODES))
    return tally.relu(tally.batch_norm(tally.convolution(joined, channels, 1), affine=False))
