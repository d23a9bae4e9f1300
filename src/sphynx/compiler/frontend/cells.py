"""Walks a network of Sphynx cells into a fused graph, by its design. No torch.

Layers, joints and numbers are called as the modules of `network.builder` are: `cells.2.edges.5.0.weight` is a kernel.
"""

from __future__ import annotations

import numpy as np

from sphynx.compiler.frontend.activation import walk_activation
from sphynx.compiler.frontend.numbers import Numbers, array_of, norm_of
from sphynx.compiler.fusion.affine import Node, Window
from sphynx.compiler.fusion.fuse import Fuser
from sphynx.compiler.fusion.window_sums import sliding_spans
from sphynx.space.cell import INPUT_NODES, Edge
from sphynx.space.design import Design
from sphynx.space.operations import SpatialStep, convolution_steps, is_convolution
from sphynx.space.tally import windows

_STEM = SpatialStep(kernel=3, stride=1, padding=1, dilation=1)
_HALVING = SpatialStep(kernel=3, stride=2, padding=1, dilation=1)  # of the ImageNet stem
_POINT = SpatialStep(kernel=1, stride=1, padding=0, dilation=1)


def walk_cells(fuser: Fuser, design: Design, numbers: Numbers) -> Node:
    """Return the node of the logits."""
    return _Walker(fuser, design, numbers).network()


def average_windows(
    fuser: Fuser, x: Node, kernel: int, stride: int, padding: int, name: str, *, counts_padding: bool
) -> Node:
    rows, columns = (
        sliding_spans(n, kernel, stride, padding, windows(n, kernel, stride, padding)) for n in x.shape[1:]
    )
    counts = ((kernel,) * len(rows), (kernel,) * len(columns)) if counts_padding else None
    return fuser.average(x, rows, columns, name, counts=counts)


class _Walker:
    def __init__(self, fuser: Fuser, design: Design, numbers: Numbers) -> None:
        self.fuser, self.design, self.numbers = fuser, design, numbers

    def network(self) -> Node:
        older, newer = self.stem()
        for position in range(self.design.depth):
            older, newer = newer, self.cell(position, older, newer)
        pooled = self.fuser.average(newer, ((0, newer.shape.height),), ((0, newer.shape.width),), "head")
        weights, bias = array_of(self.numbers, "head.weight"), array_of(self.numbers, "head.bias")
        logits = self.fuser.convolve(pooled, weights[:, :, None, None], Window(1, 1, 1, 1))
        return self.fuser.scale(logits, np.ones(len(weights)), bias)

    def stem(self) -> tuple[Node, Node]:
        if self.design.stem != "imagenet":
            x = self.normed(self.convolved(self.fuser.input, _STEM, "stem.layers.0"), "stem.layers.1")
            x = self.fuser.joint(x, "stem")
            return x, x
        half, eighth = "stem.to_quarter", "stem.to_eighth"
        x = self.normed(self.convolved(self.fuser.input, _HALVING, f"{half}.0"), f"{half}.1")
        x = self.joined(self.activation(x, f"{half}.2"), f"{half}.3")
        older = self.normed(self.convolved(x, _HALVING, f"{half}.3"), f"{half}.4")
        x = self.joined(self.activation(older, f"{eighth}.0"), f"{eighth}.1")
        return older, self.normed(self.convolved(x, _HALVING, f"{eighth}.1"), f"{eighth}.2")

    def cell(self, position: int, older: Node, newer: Node) -> Node:
        design, name = self.design, f"cells.{position}"
        reducing = position in design.reduce_positions
        edges = [edge for pair in (design.genotype.reduce if reducing else design.genotype.normal) for edge in pair]
        strides = [2 if reducing and edge.source < INPUT_NODES else 1 for edge in edges]
        take_older = self.reduced if design.older_input_is_larger(position) else self.pointwise
        nodes = [
            self.fuser.joint(take_older(older, f"{name}.input_older"), f"{name}.nodes.0"),
            self.fuser.joint(self.pointwise(newer, f"{name}.input_newer"), f"{name}.nodes.1"),
        ]
        convolved = {
            edge.source for edge, stride in zip(edges, strides, strict=True) if (edge.operation, stride) != ("skip", 1)
        }
        for number in range(0, len(edges), 2):
            first, second = (
                self.edge(edges[at], strides[at], nodes[edges[at].source], f"{name}.edges.{at}")
                for at in (number, number + 1)
            )
            total = first + second
            nodes.append(self.fuser.joint(total, f"{name}.nodes.{len(nodes)}") if len(nodes) in convolved else total)
        output = self.normed(self.joining(nodes[INPUT_NODES:], f"{name}.output.0"), f"{name}.output.1")
        return self.activation(output, f"{name}.activation")

    def joining(self, nodes: list[Node], name: str) -> Node:
        """A 1x1 convolution of joined nodes, which is the sum of its parts."""
        parts = np.split(array_of(self.numbers, f"{name}.weight"), len(nodes), axis=1)
        terms = [
            self.fuser.convolve(node, part, Window(1, 1, node.shape.height, node.shape.width))
            for node, part in zip(nodes, parts, strict=True)
        ]
        return sum(terms[1:], terms[0])

    def edge(self, edge: Edge, stride: int, x: Node, name: str) -> Node:
        if is_convolution(edge.operation):
            return self.stack(convolution_steps(edge.operation, stride, self.design.conv_stack), x, name)
        if edge.operation == "avg_pool":
            pooled = average_windows(self.fuser, x, 3, stride, 1, f"{name}.0", counts_padding=False)
            return self.normed(pooled, f"{name}.1")
        return x if stride == 1 else self.reduced(x, name)

    def stack(self, steps: tuple[SpatialStep, ...], x: Node, name: str) -> Node:
        """Each step is a ReLU where the design has such, a convolution, a 1x1 one where it is separable, and a norm."""
        at = 0
        for step in steps:
            if self.design.inner_relus:
                x, at = self.activation(x, f"{name}.{at}"), at + 1
            for part in (step, _POINT)[: 2 if self.design.convolution == "separable" else 1]:
                x = self.joined(x, f"{name}.{at}") if at else x
                x, at = self.convolved(x, part, f"{name}.{at}"), at + 1
            x, at = self.normed(x, f"{name}.{at}"), at + 1
        return x

    def pointwise(self, x: Node, name: str) -> Node:
        return self.normed(self.convolved(x, _POINT, f"{name}.0"), f"{name}.1")

    def reduced(self, x: Node, name: str) -> Node:
        """Two 1x1 convolutions of stride 2, one pixel apart, are one sparse 2x2 convolution."""
        odd, even = array_of(self.numbers, f"{name}.odd.weight"), self.numbers.find(f"{name}.even.weight")
        even_channels = 0 if even is None else len(even)
        weights = np.zeros((even_channels + len(odd), x.shape.channels, 2, 2))
        if even is not None:
            weights[:even_channels, :, 0, 0] = even[:, :, 0, 0]
        weights[even_channels:, :, 1, 1] = odd[:, :, 0, 0]
        window = Window(2, 2, (x.shape.height + 1) // 2, (x.shape.width + 1) // 2, stride=2)
        return self.normed(self.fuser.convolve(x, weights, window), f"{name}.norm")

    def convolved(self, x: Node, step: SpatialStep, name: str) -> Node:
        """A kernel that reads fewer channels than there are reads them in groups."""
        kernel = self.numbers.kernel(f"{name}.weight", outline=self.fuser.is_outline)
        height, width = (
            windows(n, step.kernel, step.stride, step.padding, step.dilation) for n in (x.shape.height, x.shape.width)
        )
        size, padding = step.kernel, step.padding
        window = Window(size, size, height, width, step.stride, step.dilation, padding, padding)
        return self.fuser.convolve(x, kernel, window, x.shape.channels // kernel.shape[1])

    def normed(self, x: Node, name: str) -> Node:
        return self.fuser.scale(x, *norm_of(self.numbers, name))

    def joined(self, x: Node, name: str) -> Node:
        """A joint before the layer of this name."""
        return self.fuser.joint(x, f"{name}.input")

    def activation(self, x: Node, name: str) -> Node:
        return walk_activation(self.fuser, self.numbers, name, x, name)
