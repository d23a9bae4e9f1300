"""Builds the fused graph: nodes stay symbolic (affine.py) until a nonlinearity, or a border, needs their values.

`convolve` and `average` are what a network's walker calls. Where composition would not be exact the node becomes a
tensor of its own, and the map a chain of two. `as_tensor` merges all kernels that read one tensor into one, cuts off
taps that never meet a pixel, and finds dilations.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from math import gcd, lcm

import numpy as np

from sphynx.program.affine import (
    Floats,
    Node,
    Reads,
    Window,
    compose,
    composes_exactly,
    tensor_node,
)
from sphynx.program.ir import INPUT, Graph, Linear, Pool, Relu, Step, Term
from sphynx.space.tally import Shape

Spans = tuple[tuple[int, int], ...]  # (first, after the last) along one axis


@dataclass(frozen=True, eq=False)
class Fused:
    """A network in real numbers: the steps of a program, and their weights by name."""

    graph: Graph
    weights: dict[str, Floats]


class Fuser:
    def __init__(self, image: Shape, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        self.image = image
        self._steps: list[Step] = []
        self._weights: dict[str, Floats] = {}
        self._tensors: dict[int, tuple[Node, Node]] = {}  # by identity: a node and its tensor
        self._activated: dict[int, tuple[Node, Node]] = {}
        self._pooled: dict[tuple[str, Spans, Spans, bool], str] = {}
        # The client's input is the pixel: (pixel / 255 - mean) / std.
        deviations = np.array(std)
        self.input = tensor_node(INPUT, image).scaled(1 / (255 * deviations), -np.array(mean) / deviations)

    def convolve(self, node: Node, weights: Floats, window: Window, name: str) -> Node:
        """`name` is the layer that reads the node, should the node have to become a tensor for it."""
        if not composes_exactly(node, window):
            node = self.as_tensor(node, f"{name}.input")
        return compose(node, weights, window)

    def average(self, node: Node, rows: Spans, columns: Spans, name: str, *, whole: int = 0) -> Node:
        """The mean over windows; `whole` is the divisor of all of them where padding counts as pixels."""
        if not all(reads.is_pointwise and reads.shape[1:] == node.shape[1:] for reads in node.kernels):
            node = self.as_tensor(node, f"{name}.input")
        row_factors, row_divisor = ((1,) * len(rows), 1) if whole else _weights_of_spans(rows)
        column_factors, column_divisor = ((1,) * len(columns), 1) if whole else _weights_of_spans(columns)
        divisor = whole or row_divisor * column_divisor
        kernels: dict[Reads, Floats] = {}
        for reads, kernel in node.kernels.items():
            key = (reads.source, rows, columns, bool(whole))
            if key not in self._pooled:
                self._pooled[key] = f"{name}.pool({reads.source})"
                self._steps.append(
                    Pool(self._pooled[key], reads.source, rows, row_factors, columns, column_factors),
                )
            shape = Shape(reads.shape.channels, len(rows), len(columns))
            kernels[Reads(self._pooled[key], shape, 1, 0, 0, 1, 1)] = kernel / divisor
        bias = np.zeros((node.shape.channels, len(rows), len(columns)))
        for y, (top, bottom) in enumerate(rows):
            for x, (left, right) in enumerate(columns):
                scale = row_factors[y] * column_factors[x] / divisor
                bias[:, y, x] = scale * node.bias[:, top:bottom, left:right].sum(axis=(1, 2))
        return Node(Shape(node.shape.channels, len(rows), len(columns)), kernels, bias)

    def relu(self, node: Node, name: str) -> Node:
        """Nodes that several layers pass through a ReLU are passed once."""
        if id(node) not in self._activated:
            tensor = self.as_tensor(node, f"{name}.input")
            (source,) = {reads.source for reads in tensor.kernels}
            self._steps.append(Relu(name, source))
            self._activated[id(node)] = node, tensor_node(name, node.shape)
        return self._activated[id(node)][1]

    def finish(self, node: Node, name: str) -> Fused:
        self._append(node, name)
        return Fused(Graph(self.image, tuple(self._steps)), self._weights)

    def as_tensor(self, node: Node, name: str) -> Node:
        """The same values, read from a tensor that a linear step makes."""
        if id(node) not in self._tensors:
            self._append(node, name)
            self._tensors[id(node)] = node, tensor_node(name, node.shape)
        return self._tensors[id(node)][1]

    def _append(self, node: Node, name: str) -> None:
        terms, weights = [], []
        groups: dict[tuple[str, int], list[tuple[Reads, Floats]]] = defaultdict(list)
        for reads, kernel in node.kernels.items():
            groups[reads.source, reads.stride].append((reads, kernel))
        for parts in groups.values():
            term, kernel = _trimmed(*_merged(parts), node.shape)
            terms.append(term)
            weights.append(kernel)
        step = Linear(name, tuple(terms), node.shape)
        self._steps.append(step)
        for number, array in enumerate(weights):
            self._weights[step.weight_name(number)] = array
        self._weights[step.bias_name] = node.bias


def _weights_of_spans(spans: Spans) -> tuple[tuple[int, ...], int]:
    """Whole factors that make every window weigh the same, and their common divisor: 3, 2 with 6 for a cut 3x3."""
    lengths = [last - first for first, last in spans]
    divisor = lcm(*lengths)
    return tuple(divisor // length for length in lengths), divisor


def _merged(parts: list[tuple[Reads, Floats]]) -> tuple[Reads, Floats]:
    """One kernel for all that read the same tensor with the same stride."""
    first = parts[0][0]
    top, left = (max(getattr(reads, side) for reads, _ in parts) for side in ("top", "left"))
    rows = max(top - reads.top + reads.rows for reads, _ in parts)
    columns = max(left - reads.left + reads.columns for reads, _ in parts)
    merged = np.zeros((*parts[0][1].shape[:2], rows, columns))
    for reads, kernel in parts:
        y, x = top - reads.top, left - reads.left
        merged[:, :, y : y + reads.rows, x : x + reads.columns] += kernel
    return replace(first, top=top, left=left, rows=rows, columns=columns), merged


def _trimmed(reads: Reads, kernel: Floats, out: Shape) -> tuple[Term, Floats]:
    """Without the border of taps that are zero or meet no pixel, and on a dilated grid where all others are zero."""
    used = np.any(kernel != 0, axis=(0, 1))
    rows = _useful(used.any(axis=1), reads.stride, reads.top, reads.shape.height, out.height)
    columns = _useful(used.any(axis=0), reads.stride, reads.left, reads.shape.width, out.width)
    row_gap, column_gap = (gcd(*(n - taps[0] for n in taps)) for taps in (rows, columns))
    dilation = max(1, gcd(row_gap, column_gap))
    kernel = kernel[:, :, rows[0] : rows[-1] + 1 : dilation, columns[0] : columns[-1] + 1 : dilation]
    height, width = kernel.shape[2:]
    top, left = reads.top - rows[0], reads.left - columns[0]
    term = Term(reads.source, height, width, reads.stride, dilation, top, left)
    return term, np.ascontiguousarray(kernel)


def _useful(used: Floats, stride: int, padding: int, length: int, outputs: int) -> list[int]:
    """Taps with a weight that some output multiplies with a pixel; one tap where there is none."""
    found = [
        tap
        for tap in np.flatnonzero(used).tolist()
        if any(0 <= stride * y - padding + tap < length for y in range(outputs))
    ]
    return found or [0]
