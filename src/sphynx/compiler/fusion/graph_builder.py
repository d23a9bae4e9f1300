"""Builds a fused graph: its steps so far, their weights, and how a node becomes the tensor of a step.

What a node takes of tensors as it is becomes a public sum, beside the linear map of the rest. Its kernels become the
terms of that map, as few convolutions as possible, of tensors and of their borders: kernels that read one tensor with
one stride become one kernel, cut to the taps that meet a pixel and put on a dilated grid where all other taps are zero.
Weights of single source positions (`kernel_axis.Fixed`) become convolutions of crops: in a crop of no more positions
than the stride, every pair of an output and a position has a tap of its own.

An outline is the same graph without its weights: every kernel has one channel, 1 where a tap is used. It is made in
milliseconds and costs what the network costs, because costs depend on shapes alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.fusion.affine import Floats, Node, Reads, consolidated
from sphynx.compiler.fusion.kernel_axis import Axis, Fixed, Sliding
from sphynx.compiler.fusion.selection import Selection
from sphynx.program.ir import INPUT, NOTHING, Combine, Gate, Gather, Linear, Pool, PublicMap, Relu, Step
from sphynx.program.steps import Term, made_shape
from sphynx.space.tally import Shape

Run = tuple[int, int]  # positions of an axis: the first, and the one after the last

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


@dataclass(frozen=True)
class Crop:
    """Some rows and columns of a tensor; None stands for all of them."""

    source: str
    rows: Run | None
    columns: Run | None


def merged_terms(node: Node) -> Iterator[tuple[Crop, Term, Floats]]:
    """The terms that add up to the node, less its bias map; a term's source is still to be named after its crop."""
    crops: dict[Crop, dict[Reads, Floats]] = defaultdict(dict)
    for crop, reads, kernel in _crop(node):
        crops[crop][reads] = crops[crop][reads] + kernel if reads in crops[crop] else kernel
    for crop, kernels in crops.items():
        for reads, kernel in consolidated(kernels).items():
            yield crop, *_trim(reads, kernel, node.shape)


def _crop(node: Node) -> Iterator[tuple[Crop, Reads, Floats]]:
    """Every kernel as one that slides over a tensor or a crop of it. What is zero throughout is left out."""
    groups: dict[tuple[str, int, int], list[tuple[Reads, Floats]]] = defaultdict(list)
    for reads, kernel in consolidated(node.kernels).items():
        if kernel.any() or len(node.kernels) == 1:
            groups[reads.source, _stride(reads.rows), _stride(reads.columns)].append((reads, kernel))
    for (source, row_stride, column_stride), parts in groups.items():
        row_runs = _runs((reads.rows for reads, _ in parts), column_stride)
        column_runs = _runs((reads.columns for reads, _ in parts), row_stride)
        # A crop's own stride is free where both of its axes are fixed.
        stride = row_stride or column_stride or max(last - first for first, last in (*row_runs, *column_runs))
        for reads, kernel in parts:
            for rows, row_axis, part in _slid(reads.rows, row_runs, stride, kernel):
                for columns, column_axis, slid in _slid(reads.columns, column_runs, stride, part.swapaxes(2, 3)):
                    if slid.any() or len(node.kernels) == 1:
                        moved = replace(reads, rows=row_axis, columns=column_axis)
                        yield Crop(source, rows, columns), moved, slid.swapaxes(2, 3)


def _stride(axis: Axis) -> int:
    """0 stands for a fixed axis."""
    return axis.stride if isinstance(axis, Sliding) else 0


def _runs(axes: Iterable[Axis], most: int) -> list[Run]:
    """The positions of fixed axes, neighbours together, `most` at a time where that is not 0."""
    blocks = [range(axis.position, axis.position + axis.positions) for axis in axes if isinstance(axis, Fixed)]
    runs: list[Run] = []
    for position in sorted(set().union(*blocks)):
        if runs and runs[-1][1] == position and (not most or position - runs[-1][0] < most):
            runs[-1] = (runs[-1][0], position + 1)
        else:
            runs.append((position, position + 1))
    return runs


def _slid(axis: Axis, runs: list[Run], stride: int, kernel: Floats) -> Iterator[tuple[Run | None, Sliding, Floats]]:
    """Along the kernel's third axis: output y's weight for position i of a crop is tap i + stride * (last y - y)."""
    if isinstance(axis, Sliding):
        yield None, axis, kernel
        return
    outputs, inputs, _, others = kernel.shape
    blocks = kernel.reshape(outputs, inputs, axis.positions, axis.outputs, others)
    before = stride * (axis.output + axis.outputs - 1)
    for first, last in runs:
        positions = range(max(first, axis.position), min(last, axis.position + axis.positions))
        if positions:
            length = last - first
            slid = np.zeros((outputs, inputs, stride * (axis.outputs - 1) + length, others))
            for position in positions:
                own = slid[:, :, position - first : position - first + stride * (axis.outputs - 1) + 1 : stride]
                own[:] = blocks[:, :, position - axis.position, ::-1]
            yield (first, last), Sliding(length, stride, before, slid.shape[2]), slid


def _trim(reads: Reads, kernel: Floats, out: Shape) -> tuple[Term, Floats]:
    """Without the border of taps that are zero or meet no pixel, and on a dilated grid where all others are zero."""
    assert isinstance(reads.rows, Sliding) and isinstance(reads.columns, Sliding)
    used = np.any(kernel != 0, axis=(0, 1))
    rows = _useful(used.any(axis=1), reads.rows, out.height)
    columns = _useful(used.any(axis=0), reads.columns, out.width)
    row_gap, column_gap = (gcd(*(n - taps[0] for n in taps)) for taps in (rows, columns))
    dilation = max(1, gcd(row_gap, column_gap))
    kernel = kernel[:, :, rows[0] : rows[-1] + 1 : dilation, columns[0] : columns[-1] + 1 : dilation]
    top, left = reads.rows.before - rows[0], reads.columns.before - columns[0]
    height, width = kernel.shape[2:]
    term = Term(reads.source, height, width, reads.rows.stride, dilation, top, left, groups=reads.groups)
    return term, np.ascontiguousarray(kernel)


def _useful(used: Floats, axis: Sliding, outputs: int) -> list[int]:
    """Taps with a weight that some output multiplies with a pixel; one tap where there is none."""
    stride, before = axis.stride, axis.before

    def meets(tap: int) -> bool:
        first = max(0, -((tap - before) // stride))  # the first output that reads no pixel before the first one
        return first < outputs and stride * first - before + tap < axis.length

    return [tap for tap in np.flatnonzero(used).tolist() if meets(tap)] or [0]
