"""Builds the fused graph: nodes stay symbolic (affine.py) until a nonlinearity, or a cut, needs their values.

`convolve`, `scale`, `shift`, `average` and `joint` are what a network's walker calls (trace.py, onnx_network.py).
`cuts` names joints whose node becomes a tensor of its own all the same, which makes a chain of two maps: where that is
cheaper (choose.py).

An outline is the same graph without its weights: every kernel has one channel, 1 where a tap is used. It is made in
milliseconds and costs what the network costs, because costs depend on shapes alone.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from math import lcm

import numpy as np

from sphynx.program.fusion.affine import Floats, Node, Reads, Window, compose, pointwise, ungrouped
from sphynx.program.fusion.terms import Crop, merged_terms
from sphynx.program.ir import INPUT, Graph, Linear, Pool, Relu, Step
from sphynx.space.tally import Shape

Spans = tuple[tuple[int, int], ...]  # (first, after the last) along one axis


@dataclass(frozen=True, eq=False)
class Fused:
    """A network in real numbers: the steps of a program, and their weights by name.

    `joints` are the places where it could be cut.
    """

    graph: Graph
    weights: dict[str, Floats]
    joints: tuple[str, ...]


class Fuser:
    def __init__(
        self,
        image: Shape,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        *,
        cuts: Container[str] = (),
        outline: bool = False,
    ) -> None:
        self.image, self._cuts, self._outline = image, cuts, outline
        self._steps: list[Step] = []
        self._weights: dict[str, Floats] = {}
        self._joints: list[str] = []
        self._tensors: dict[int, tuple[Node, Node]] = {}  # by identity: a node and its tensor
        self._activated: dict[int, tuple[Node, Node]] = {}
        self._pooled: dict[tuple[str, Spans, Spans, bool], str] = {}
        self._shapes = {INPUT: image}
        # The client's input is the pixel: (pixel / 255 - mean) / std.
        deviations = np.array(std)
        self.input = self.scale(self._tensor(INPUT, image), 1 / (255 * deviations), -np.array(mean) / deviations)

    def joint(self, node: Node, name: str) -> Node:
        """A place where the network can be cut: the node itself, or, if it is cut here, the tensor that it becomes."""
        if all(reads.is_pointwise(node.shape) for reads in node.kernels):
            return node
        self._joints.append(name)
        return self.as_tensor(node, name) if name in self._cuts else node

    def convolve(self, node: Node, weights: Floats, window: Window, groups: int = 1) -> Node:
        channels = len(weights)
        if self._outline:
            weights = np.any(weights != 0, axis=(0, 1))[None, None].astype(np.float64)
        else:
            weights = ungrouped(weights, groups)
        return compose(node, weights, window, channels)

    def scale(self, node: Node, factor: Floats, shift: Floats) -> Node:
        """Per channel: batch norm with its statistics fixed, or a bias."""
        return node if self._outline else node.scaled(factor, shift)

    def shift(self, node: Node, shift: Floats) -> Node:
        """A constant map added."""
        return node if self._outline else replace(node, bias=node.bias + shift)

    def average(self, node: Node, rows: Spans, columns: Spans, name: str, *, whole: int = 0) -> Node:
        """The mean over windows; `whole` is the divisor of all of them where padding counts as pixels."""
        if not all(reads.is_pointwise(node.shape) for reads in node.kernels):
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
                self._shapes[self._pooled[key]] = Shape(reads.channels, len(rows), len(columns))
            pooled = self._pooled[key]
            kernels[pointwise(pooled, self._shapes[pooled])] = kernel / divisor
        bias = np.zeros((len(node.bias), len(rows), len(columns)))
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
            self._activated[id(node)] = node, self._tensor(name, node.shape)
        return self._activated[id(node)][1]

    def finish(self, node: Node, name: str) -> Fused:
        self._append(node, name)
        return Fused(Graph(self.image, tuple(self._steps)), self._weights, tuple(self._joints))

    def as_tensor(self, node: Node, name: str) -> Node:
        """The same values, read from a tensor that a linear step makes."""
        if id(node) not in self._tensors:
            self._append(node, name)
            self._tensors[id(node)] = node, self._tensor(name, node.shape)
        return self._tensors[id(node)][1]

    def _tensor(self, name: str, shape: Shape) -> Node:
        self._shapes[name] = shape
        channels = 1 if self._outline else shape.channels
        return Node(
            shape, {pointwise(name, shape): np.eye(channels)[:, :, None, None]}, np.zeros((channels, *shape[1:]))
        )

    def _append(self, node: Node, name: str) -> None:
        terms, weights = [], []
        for crop, term, kernel in merged_terms(node):
            terms.append(replace(term, source=self._crop(crop)))
            weights.append(kernel)
        step = Linear(name, tuple(terms), node.shape)
        self._steps.append(step)
        for number, array in enumerate(weights):
            self._weights[step.weight_name(number)] = array
        self._weights[step.bias_name] = node.bias

    def _crop(self, crop: Crop) -> str:
        """The tensor's name; a crop is a public map that sums over windows of one element."""
        shape = self._shapes[crop.source]
        rows, columns = crop.rows or (0, shape.height), crop.columns or (0, shape.width)
        if (rows, columns) == ((0, shape.height), (0, shape.width)):
            return crop.source
        name = f"{crop.source}[{rows[0]}:{rows[1]},{columns[0]}:{columns[1]}]"
        if name not in self._shapes:
            self._shapes[name] = Shape(shape.channels, rows[1] - rows[0], columns[1] - columns[0])
            spans = [tuple((n, n + 1) for n in range(*run)) for run in (rows, columns)]
            self._steps.append(Pool(name, crop.source, spans[0], (1,) * len(spans[0]), spans[1], (1,) * len(spans[1])))
        return name


def sliding_spans(length: int, kernel: int, stride: int, before: int, count: int) -> Spans:
    """What each of the windows sees of an axis that is padded before its first element."""
    starts = (stride * number - before for number in range(count))
    return tuple((max(0, start), min(length, start + kernel)) for start in starts)


def _weights_of_spans(spans: Spans) -> tuple[tuple[int, ...], int]:
    """Whole factors that make every window weigh the same, and their common divisor: 3, 2 with 6 for a cut 3x3."""
    lengths = [last - first for first, last in spans]
    divisor = lcm(*lengths)
    return tuple(divisor // length for length in lengths), divisor
