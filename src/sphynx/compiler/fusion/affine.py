"""Affine maps of feature maps, kept symbolic: what a cell's node is, as convolutions of the tensors behind it.

A `Node` is a sum of kernels over tensors plus a bias map. Applying a convolution to it composes kernels. That alone is
exact only where the convolution reads no padding at which a kernel's own formula, continued beyond the node's border,
would still read pixels. What such positions add is taken away again, by kernels of single source rows and columns: with
R and C saying that a position lies outside by its row or column, what counts is 1 - R - C + R C, so rows and columns
are subtracted and the corners, subtracted twice, added back (kernel_axis.py). The bias map is pushed through with its
borders.

Elements of tensors as they are stay apart as selections (selection.py) until a kernel has to be made of them.

Compositions of outlines are kept for as long as a block says: a search for cuts outlines one network many times, and
most of it stays the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import product
from math import gcd

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.fusion.kernel_axis import Along, Axis, Fixed, Places, Sliding, composed_axis, places, united
from sphynx.compiler.fusion.selection import Selection
from sphynx.program.convolve import convolve
from sphynx.program.ir import Term
from sphynx.space.tally import Shape

Floats = NDArray[np.float64]
_GROUPED_CHANNELS = 32  # at once
_KEPT_OUTLINES = 512  # a network has a few dozen


@dataclass(frozen=True)
class Reads:
    """The way in which a kernel reads its source."""

    source: str
    channels: int  # of the source
    rows: Axis
    columns: Axis
    groups: int = 1  # of channels: the kernel is zero between two groups

    def is_pointwise(self, shape: Shape) -> bool:
        """Return whether it takes each element of a map of this height and width to the element at its place."""
        return self.rows == Sliding(shape.height, 1, 0, 1) and self.columns == Sliding(shape.width, 1, 0, 1)


@dataclass(frozen=True)
class Window:
    """An outer convolution's geometry, as torch has it; the padding may be uneven."""

    rows: int
    columns: int
    height: int  # of its output
    width: int
    stride: int = 1
    dilation: int = 1
    top: int = 0
    left: int = 0

    def term(self, source: str) -> Term:
        return Term(source, self.rows, self.columns, self.stride, self.dilation, self.top, self.left)

    def along_rows(self) -> Along:
        return Along(self.rows, self.height, self.stride, self.dilation, self.top)

    def along_columns(self) -> Along:
        return Along(self.columns, self.width, self.stride, self.dilation, self.left)


@dataclass(frozen=True, eq=False)
class Node:
    shape: Shape
    kernels: dict[Reads, Floats]  # [channels, source channels, row taps, column taps]
    bias: Floats  # [channels, height, width]
    parts: tuple[Selection, ...] = ()

    def __add__(self, other: Node) -> Node:
        kernels = dict(self.kernels)
        for reads, kernel in other.kernels.items():
            kernels[reads] = kernels[reads] + kernel if reads in kernels else kernel
        return Node(self.shape, kernels, self.bias + other.bias, self.parts + other.parts)

    @property
    def is_public(self) -> bool:
        """True if it holds elements of tensors and nothing else."""
        return not self.kernels and not self.bias.any()

    def scaled(self, factor: Floats, shift: Floats) -> Node:
        """Per channel: batch norm with its statistics fixed."""
        assert not self.parts
        kernels = {reads: factor[:, None, None, None] * kernel for reads, kernel in self.kernels.items()}
        return Node(self.shape, kernels, factor[:, None, None] * self.bias + shift[:, None, None])


def compose(node: Node, weights: Floats, window: Window, channels: int, groups: int = 1) -> Node:
    """The convolution of the node, which has this many channels and groups."""
    assert not node.parts
    composed: dict[Reads, Floats] = {}
    for reads, kernel in consolidated(node.kernels).items():
        rows = composed_axis(reads.rows, node.shape.height, window.along_rows())
        columns = composed_axis(reads.columns, node.shape.width, window.along_columns())
        for row, column in product(rows, columns):
            outer = Reads(reads.source, reads.channels, row.axis, column.axis, gcd(reads.groups, groups))
            shape = (len(weights), kernel.shape[1], row.axis.taps, column.axis.taps)
            composed[outer] = composed[outer] if outer in composed else np.zeros(shape)
        flat = np.ascontiguousarray(kernel).reshape(len(kernel), -1)
        for y, x in product(range(window.rows), range(window.columns)):
            taps = np.ascontiguousarray(weights[:, :, y, x])  # strided, the product would not be BLAS's
            if not taps.any():
                continue  # half of a factorized reduction
            part = _multiply_groups(taps, flat, groups).reshape(len(weights), *kernel.shape[1:])
            for row, column in product(rows, columns):
                (from_rows, to_rows), (from_columns, to_columns) = row.moves[y], column.moves[x]
                target = composed[Reads(reads.source, reads.channels, row.axis, column.axis, gcd(reads.groups, groups))]
                moved = part[_taps(from_rows, from_columns)]
                if row.sign == column.sign:
                    target[_taps(to_rows, to_columns)] += moved
                else:
                    target[_taps(to_rows, to_columns)] -= moved
    size = (window.height, window.width)
    is_dense = len(weights) == channels  # not an outline
    bias = convolve(node.bias[None], weights, replace(window.term(""), groups=groups if is_dense else 1), size)[0]
    return Node(Shape(channels, *size), composed, bias)


def _multiply_groups(taps: Floats, flat: Floats, groups: int) -> Floats:
    """Some groups at a time: between two of them the taps are zero. An outline has one channel, in no group."""
    outputs, inputs = (length // groups for length in taps.shape)
    if groups == 1 or not outputs or not inputs:
        return taps @ flat
    together = max(1, _GROUPED_CHANNELS // max(outputs, inputs))
    parts = []
    for first in range(0, groups, together):
        columns = slice(first * inputs, (first + together) * inputs)
        parts.append(taps[first * outputs : (first + together) * outputs, columns] @ flat[columns])
    return np.concatenate(parts)


def consolidated(kernels: dict[Reads, Floats]) -> dict[Reads, Floats]:
    """One kernel for all that read one tensor with one stride, and for each side of its border."""
    groups: dict[tuple[str, int, bool, bool], list[Reads]] = defaultdict(list)
    for reads in kernels:
        kinds = (isinstance(reads.rows, Fixed), isinstance(reads.columns, Fixed))
        groups[reads.source, reads.channels, *kinds].append(reads)
    merged: dict[Reads, Floats] = {}
    for group in groups.values():
        rows, columns = united(reads.rows for reads in group), united(reads.columns for reads in group)
        if len(group) == 1:
            merged[group[0]] = kernels[group[0]]
            continue
        groups_of_all = gcd(*(reads.groups for reads in group))
        for reads in group:
            whole = replace(reads, rows=rows[reads.rows], columns=columns[reads.columns], groups=groups_of_all)
            kernel = kernels[reads]
            if whole not in merged:
                merged[whole] = np.zeros((*kernel.shape[:2], whole.rows.taps, whole.columns.taps))
            merged[whole][_taps(places(reads.rows, whole.rows), places(reads.columns, whole.columns))] += kernel
    return merged


def _taps(rows: Places, columns: Places) -> tuple[slice, slice, Places, Places]:
    """The index of all pairs of these rows and columns, in kernels of all channels."""
    every = slice(None)
    if isinstance(rows, slice) or isinstance(columns, slice):
        return every, every, rows, columns
    return every, every, rows[:, None], columns


def used_taps(weights: Floats) -> Floats:
    """1 where any channel has a weight, as a kernel of one channel."""
    if weights.strides[:2] == (0, 0):  # all channels are alike
        weights = weights[:1, :1]
    used: Floats = np.any(weights, axis=(0, 1), keepdims=True).astype(np.float64)
    return used


@dataclass(frozen=True)
class _Question:
    key: tuple[object, ...]
    node: Node = field(compare=False)
    weights: Floats = field(compare=False)


def compose_outline(node: Node, weights: Floats, window: Window, channels: int, groups: int = 1) -> Node:
    """Compose as `compose` does. Each call makes a node of its own: nodes are told apart by identity."""
    kernels = tuple((reads, kernel.shape, kernel.tobytes()) for reads, kernel in node.kernels.items())
    numbers = (node.bias.tobytes(), weights.shape, weights.tobytes())
    key = (node.shape, kernels, *numbers, window, channels, groups)
    return replace(_composed.get()(_Question(key, node, weights)))


@contextmanager
def keeping_outlines() -> Iterator[None]:
    """Within the block, in this thread, outlines are composed once."""
    before = _composed.set(lru_cache(_KEPT_OUTLINES)(_compose))
    try:
        yield
    finally:
        _composed.reset(before)


def _compose(question: _Question) -> Node:
    *_, window, channels, groups = question.key
    assert isinstance(window, Window) and isinstance(channels, int) and isinstance(groups, int)
    return compose(question.node, question.weights, window, channels, groups)


_composed: ContextVar[Callable[[_Question], Node]] = ContextVar("composed outlines", default=_compose)
