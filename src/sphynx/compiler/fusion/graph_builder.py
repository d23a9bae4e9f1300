"""Builds a fused graph: its steps so far, their weights, and how a node becomes the tensor of a step.

What a node takes of tensors as it is becomes a public sum, beside the linear map of the rest.

An outline is the same graph without its weights: every kernel has one channel, 1 where a tap is used. It is made in
milliseconds and costs what the network costs, because costs depend on shapes alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.fusion.affine import Floats, Node, Reads
from sphynx.compiler.fusion.kernel_axis import Sliding
from sphynx.compiler.fusion.selection import Selection
from sphynx.compiler.fusion.terms import Crop, merged_terms
from sphynx.program.ir import INPUT, NOTHING, Combine, Gate, Gather, Linear, Pool, PublicMap, Relu, Step
from sphynx.program.steps import Term, made_shape
from sphynx.space.tally import Shape

SUM_SUFFIX = ".map"  # of the linear map beside what a node takes of tensors as it is


class GraphBuilder:
    def __init__(self, image: Shape, *, outline: bool) -> None:
        self.image, self.is_outline = image, outline
        self.steps: dict[str, Step] = {}
        self.weights: dict[str, Floats] = {}
        self.shapes = {INPUT: image}

    def tensor(self, name: str) -> Node:
        shape = self.shapes[name]
        channels = 1 if self.is_outline else shape.channels
        return Node(shape, {}, np.zeros((channels, *shape[1:])), (Selection.whole(name, shape),))

    def combine(
        self,
        name: str,
        parts: Sequence[Selection],
        constants: Floats | None = None,
        factors: Sequence[float] | None = None,
    ) -> str:
        """A public sum as a step; `constants` are one for each channel, `factors` one for each part."""
        shape = Shape(*(len(index) for index in (parts[0].channels, parts[0].rows, parts[0].columns)))
        zeros = () if constants is None else (0,) * shape.channels
        unknown = () if factors is None else (0,) * len(parts)
        summands = tuple(part.summand() for part in parts)
        self.add(step := Combine(name, summands, shape, constants=zeros, factors=unknown))
        if constants is not None:
            self.weights[step.constants_name] = np.asarray(constants, np.float64)
        if factors is not None:
            self.weights[step.factors_name] = np.asarray(factors, np.float64)
        return name

    def gather(self, name: str, source: str, shape: Shape, indices: NDArray[np.integer[Any]]) -> str:
        """Single elements of a tensor, in any order, as a step."""
        self.add(Gather(name, source, shape, tuple(indices.tolist())))
        return name

    def settled(self, node: Node) -> Node:
        """The same with kernels in place of its selections."""
        return self._with_kernels(node, node.parts)

    def _with_kernels(self, node: Node, parts: tuple[Selection, ...]) -> Node:
        """Make kernels of these selections of the node. One that no kernel of one tap reads becomes a tensor first."""
        kernels = dict(node.kernels)
        for part in parts:
            axes = part.axes()
            if axes is None:
                name = self.combine(f"{part.source}[{len(self.steps)}]", (part,))
                part = Selection.whole(name, node.shape)
                axes = part.axes()
            assert axes is not None
            groups = part.shape.channels if part.keeps_channels else 1
            reads = Reads(part.source, part.shape.channels, *axes, groups)
            kernel = self._selecting(part)
            kernels[reads] = kernels[reads] + kernel if reads in kernels else kernel
        return Node(node.shape, kernels, node.bias, tuple(part for part in node.parts if part not in parts))

    def _selecting(self, part: Selection) -> Floats:
        sign = -1.0 if part.negative else 1.0
        if self.is_outline:
            return np.full((1, 1, 1, 1), sign)
        kernel = np.zeros((len(part.channels), part.shape.channels, 1, 1))
        for output, channel in enumerate(part.channels):
            if channel != NOTHING:
                kernel[output, channel] = sign
        return kernel

    def make(self, node: Node, name: str) -> None:
        """A sum costs nothing beside a map; but what the map's convolutions read anyway is a tap of theirs."""
        if node.is_public:
            self.combine(name, node.parts)
            return
        dense = {reads.source for reads in node.kernels if _is_dense(reads)}
        apart = () if not node.kernels else tuple(part for part in node.parts if part.source not in dense)
        linear = self._with_kernels(node, tuple(part for part in node.parts if part not in apart))
        if not apart:
            self._append(linear, name)
            return
        self._append(linear, f"{name}{SUM_SUFFIX}")
        self.combine(name, (Selection.whole(f"{name}{SUM_SUFFIX}", node.shape), *apart))

    def _append(self, node: Node, name: str) -> None:
        terms, weights = [], []
        for crop, term, kernel in merged_terms(node):
            terms.append(replace(term, source=self._crop(crop)))
            weights.append(kernel)
        if not terms:  # a constant: a map reads something nevertheless
            terms = [Term(INPUT, 1, 1)]
            weights = [np.zeros((1, 1, 1, 1) if self.is_outline else (node.shape.channels, self.image.channels, 1, 1))]
        self.add(step := Linear(name, tuple(terms), node.shape))
        for number, array in enumerate(weights):
            self.weights[step.weight_name(number)] = array
        self.weights[step.bias_name] = node.bias

    def add(self, step: Step) -> None:
        assert step.name not in self.steps
        self.steps[step.name] = step
        self.shapes[step.name] = made_shape(step, self.shapes)

    def _crop(self, crop: Crop) -> str:
        """The tensor's name; a crop is a public map that sums over windows of one element."""
        shape = self.shapes[crop.source]
        rows, columns = crop.rows or (0, shape.height), crop.columns or (0, shape.width)
        if (rows, columns) == ((0, shape.height), (0, shape.width)):
            return crop.source
        name = f"{crop.source}[{rows[0]}:{rows[1]},{columns[0]}:{columns[1]}]"
        if name not in self.shapes:
            spans = [tuple((n, n + 1) for n in range(*run)) for run in (rows, columns)]
            self.add(Pool(name, crop.source, spans[0], (1,) * len(spans[0]), spans[1], (1,) * len(spans[1])))
        return name

    def is_wide(self, name: str) -> bool:
        """Return whether no truncation lies between the tensor and a linear map, a gate or a sum with factors: as a
        source it would widen the ring."""
        waiting, seen = [name], {name}
        while waiting:
            step = self.steps.get(waiting.pop())
            if isinstance(step, Linear | Gate) or (isinstance(step, Combine) and step.factors):
                return True
            if isinstance(step, PublicMap) or (isinstance(step, Relu) and step.comparison):
                waiting += {*step.sources} - seen  # max pools in a row have more paths than anybody could go
                seen.update(step.sources)
        return False


def _is_dense(reads: Reads) -> bool:
    """Return whether it slides over every element of its source."""
    return all(isinstance(axis, Sliding) and axis.stride == 1 for axis in (reads.rows, reads.columns))
