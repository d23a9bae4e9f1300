"""Affine maps of feature maps, kept symbolic: what a cell's node is, as convolutions of the tensors behind it.

A `Node` is a sum of kernels over tensors plus a bias map. Applying a convolution to it composes kernels, which is exact
unless the convolution reads zeros of its padding where a kernel's own formula, continued beyond the node's border,
would still read pixels. `reads_only_zeros_outside` decides that position by position, so 1x1 maps, factorized
reductions, unpadded second convolutions and small maps need no rules of their own. The bias map is pushed through with
its borders.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sphynx.program.convolve import convolve
from sphynx.program.ir import Term
from sphynx.space.tally import Shape

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Reads:
    """Where a kernel of dilation 1 reads: output row y reads rows stride * y - top .. of a tensor."""

    source: str
    shape: Shape  # of the source
    stride: int
    top: int
    left: int
    rows: int  # of the kernel
    columns: int

    @property
    def is_pointwise(self) -> bool:
        return (self.stride, self.top, self.left, self.rows, self.columns) == (1, 0, 0, 1, 1)


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

    def read_rows(self) -> set[int]:
        return _positions(self.height, self.stride, self.top, self.dilation, self.rows)

    def read_columns(self) -> set[int]:
        return _positions(self.width, self.stride, self.left, self.dilation, self.columns)

    def term(self, source: str) -> Term:
        return Term(source, self.rows, self.columns, self.stride, self.dilation, self.top, self.left)


@dataclass(frozen=True, eq=False)
class Node:
    shape: Shape
    kernels: dict[Reads, Floats]  # [channels, source channels, rows, columns]
    bias: Floats  # [channels, height, width]

    def __add__(self, other: Node) -> Node:
        kernels = dict(self.kernels)
        for reads, kernel in other.kernels.items():
            kernels[reads] = kernels[reads] + kernel if reads in kernels else kernel
        return Node(self.shape, kernels, self.bias + other.bias)

    def scaled(self, factor: Floats, shift: Floats) -> Node:
        """Per channel: batch norm with its statistics fixed."""
        kernels = {reads: factor[:, None, None, None] * kernel for reads, kernel in self.kernels.items()}
        return replace(self, kernels=kernels, bias=factor[:, None, None] * self.bias + shift[:, None, None])


def tensor_node(source: str, shape: Shape) -> Node:
    """The tensor itself."""
    identity = np.eye(shape.channels)[:, :, None, None]
    return Node(shape, {Reads(source, shape, 1, 0, 0, 1, 1): identity}, np.zeros(shape))


def composes_exactly(node: Node, window: Window) -> bool:
    return all(reads_only_zeros_outside(reads, node.shape, window) for reads in node.kernels)


def reads_only_zeros_outside(reads: Reads, shape: Shape, window: Window) -> bool:
    """Whether the kernel, continued beyond the node, gives the zeros that the window's padding stands for."""
    rows_zero = all(
        _outside(reads.stride * row - reads.top, reads.rows, reads.shape.height)
        for row in window.read_rows()
        if not 0 <= row < shape.height
    )
    return rows_zero and all(
        _outside(reads.stride * column - reads.left, reads.columns, reads.shape.width)
        for column in window.read_columns()
        if not 0 <= column < shape.width
    )


def compose(node: Node, weights: Floats, window: Window) -> Node:
    """The convolution of the node, where that `composes_exactly`."""
    composed: dict[Reads, Floats] = {}
    for reads, kernel in node.kernels.items():
        outer = replace(
            reads,
            stride=reads.stride * window.stride,
            top=reads.stride * window.top + reads.top,
            left=reads.stride * window.left + reads.left,
            rows=reads.stride * window.dilation * (window.rows - 1) + reads.rows,
            columns=reads.stride * window.dilation * (window.columns - 1) + reads.columns,
        )
        merged = _composed_kernel(kernel, weights, reads.stride * window.dilation)
        composed[outer] = composed[outer] + merged if outer in composed else merged
    size = (window.height, window.width)
    bias = convolve(node.bias[None], weights, window.term(""), size)[0]
    return Node(Shape(len(weights), *size), composed, bias)


def _composed_kernel(inner: Floats, outer: Floats, spread: int) -> Floats:
    """`spread` is how far two neighbouring taps of the outer kernel lie apart in the inner one's source."""
    outputs, middle, rows, columns = outer.shape
    _, inputs, inner_rows, inner_columns = inner.shape
    flat = np.ascontiguousarray(inner).reshape(middle, -1)
    result = np.zeros((outputs, inputs, spread * (rows - 1) + inner_rows, spread * (columns - 1) + inner_columns))
    for row in range(rows):
        for column in range(columns):
            product = (outer[:, :, row, column] @ flat).reshape(outputs, inputs, inner_rows, inner_columns)
            y, x = spread * row, spread * column
            result[:, :, y : y + inner_rows, x : x + inner_columns] += product
    return result


def _positions(outputs: int, stride: int, padding: int, dilation: int, taps: int) -> set[int]:
    return {stride * y - padding + dilation * k for y in range(outputs) for k in range(taps)}


def _outside(first: int, taps: int, length: int) -> bool:
    return first + taps <= 0 or first >= length
