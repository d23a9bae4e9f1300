"""Builds the fused graph: nodes stay symbolic (affine.py) until a nonlinearity, or a cut, needs their values.

`convolve`, `scale`, `shift`, `average` and `joint` are what a network's walker calls (frontend/).
`cuts` names joints whose node becomes a tensor of its own all the same, which makes a chain of two maps, where that is
cheaper (choose.py). A chain widens the ring; `truncated_joint` of a name in `cuts` truncates the tensor too.

What a node takes of tensors as it is becomes a public sum, beside the linear map of the rest.

An outline is the same graph without its weights: every kernel has one channel, 1 where a tap is used. It is made in
milliseconds and costs what the network costs, because costs depend on shapes alone.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.fusion.affine import Floats, Node, Reads, Window, compose, consolidated, used_taps
from sphynx.compiler.fusion.kernel_axis import Sliding
from sphynx.compiler.fusion.outline import compose_outline
from sphynx.compiler.fusion.selection import Selection
from sphynx.compiler.fusion.terms import Crop, merged_terms
from sphynx.compiler.fusion.window_sums import (
    Counts,
    Spans,
    SummedAxis,
    count_weights,
    span_lengths,
    summed_axis,
    summed_taps,
)
from sphynx.program.folder import ungrouped
from sphynx.program.ir import (
    INPUT,
    NOTHING,
    Combine,
    Curve,
    Gate,
    Gather,
    Graph,
    Linear,
    Output,
    Pool,
    PublicMap,
    Relu,
    Square,
    Step,
    Truncate,
)
from sphynx.program.outputs import LOGITS
from sphynx.program.steps import Term, made_shape
from sphynx.space.tally import Shape

SUM_SUFFIX = ".map"  # of the linear map beside what a node takes of tensors as it is
BOTTLENECK = 2  # as many times fewer channels than its source has: then the source costs more to read


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
        self.image, self._cuts, self.is_outline = image, cuts, outline
        self._steps: dict[str, Step] = {}
        self._weights: dict[str, Floats] = {}
        self._joints: list[str] = []
        self._tensors: dict[int, tuple[Node, str]] = {}  # by identity: a node and its tensor
        self._activated: dict[int, tuple[Node, Node]] = {}
        self._pooled: dict[tuple[object, ...], str] = {}
        self._shapes = {INPUT: image}
        # The client's input is the pixel: (pixel / 255 - mean) / std.
        deviations = np.array(std)
        self.input = self.scale(self.tensor(INPUT), 1 / (255 * deviations), -np.array(mean) / deviations)

    def joint(self, node: Node, name: str) -> Node:
        """A place where the network can be cut: the node itself, or, if it is cut here, the tensor that it becomes.

        What reads a pointwise map reads its sources instead, for nothing; unless the map is a bottleneck.
        """
        is_bottleneck = any(reads.channels >= BOTTLENECK * node.shape.channels for reads in node.kernels)
        if not is_bottleneck and all(reads.is_pointwise(node.shape) for reads in node.kernels):
            return node
        self._joints.append(name)
        truncated = truncated_joint(name)
        if truncated in self._cuts:
            return self.activate(Truncate(truncated, self.compared(node, name), 0))
        return self.as_tensor(node, name) if name in self._cuts else node

    def convolve(self, node: Node, weights: Floats, window: Window, groups: int = 1) -> Node:
        taps = used_taps(weights) if self.is_outline else ungrouped(weights, groups)
        composed = compose_outline if self.is_outline else compose
        return composed(self.settled(node), taps, window, len(weights), groups)

    def scale(self, node: Node, factor: Floats, shift: Floats) -> Node:
        """Per channel: batch norm with its statistics fixed, or a bias."""
        if (factor == 1).all():
            return self.shift(node, shift[:, None, None])
        if node.is_public and not all(part.keeps_channels for part in node.parts):  # one map of joined channels
            node = self.tensor(self.combine(f"{node.parts[0].source}[{len(self._steps)}]", node.parts))
        node = self.settled(node)
        return self.shift(node, shift[:, None, None]) if self.is_outline else node.scaled(factor, shift)

    def shift(self, node: Node, shift: Floats) -> Node:
        """A constant map added. An outline knows only that there is one."""
        return replace(node, bias=node.bias + (float(shift.any()) if self.is_outline else shift))

    def average(
        self, node: Node, rows: Spans, columns: Spans, name: str, *, counts: tuple[Counts, Counts] | None = None
    ) -> Node:
        """The mean over windows; `counts` say how long each is where padding counts as pixels."""
        row_counts, column_counts = counts or (span_lengths(rows), span_lengths(columns))
        row_factors, row_divisor = count_weights(row_counts)
        column_factors, column_divisor = count_weights(column_counts)
        divisor = row_divisor * column_divisor
        windows = (rows, row_factors), (columns, column_factors)
        node = self.settled(node)
        summed = self._window_sums(node, windows, name)
        if summed is None and len(rows) == len(columns) == 1:  # the map is smaller than the kernel: read all of it
            (top, bottom), (left, right) = rows[0], columns[0]
            size = (bottom - top, right - left)
            same = np.broadcast_to(
                np.eye(node.shape.channels)[:, :, None, None] / divisor, (node.shape.channels,) * 2 + size
            )
            return self.convolve(node, same, Window(*size, 1, 1, top=-top, left=-left))
        if summed is None:
            node = self.settled(self.as_tensor(node, f"{name}.input"))
            summed = self._window_sums(node, windows, name)
            assert summed is not None
        kernels = {reads: kernel / divisor for reads, kernel in summed.items()}
        bias = np.zeros((len(node.bias), len(rows), len(columns)))
        for y, (top, bottom) in enumerate(rows):
            for x, (left, right) in enumerate(columns):
                scale = row_factors[y] * column_factors[x] / divisor
                bias[:, y, x] = scale * node.bias[:, top:bottom, left:right].sum(axis=(1, 2))
        return Node(Shape(node.shape.channels, len(rows), len(columns)), kernels, bias)

    def _window_sums(
        self, node: Node, windows: tuple[tuple[Spans, tuple[int, ...]], ...], name: str
    ) -> dict[Reads, Floats] | None:
        """The node's sums over windows as kernels of sums; None where a tensor of the node's own is the better way."""
        made = []
        for reads, kernel in consolidated(node.kernels).items():
            axes, lengths = (reads.rows, reads.columns), self._shapes[reads.source][1:]
            pitch = max((axis.taps for axis in axes if isinstance(axis, Sliding)), default=1)
            summed = [
                summed_axis(axis, length, *window, pitch)
                for axis, length, window in zip(axes, lengths, windows, strict=True)
            ]
            count = prod(len(axis.windows) for axis in summed if axis)
            if None in summed or (count > prod(lengths) and not reads.is_pointwise(node.shape)):
                return None
            made.append((reads, kernel, summed))
        sums: dict[Reads, Floats] = {}
        for reads, kernel, (rows, columns) in made:
            assert rows and columns
            pooled = self._sums(reads.source, rows, columns, name)
            part = summed_taps(kernel, reads.rows, *windows[0], rows)
            part = summed_taps(part.swapaxes(2, 3), reads.columns, *windows[1], columns).swapaxes(2, 3)
            moved = Reads(pooled, reads.channels, rows.axis, columns.axis, reads.groups)
            sums[moved] = sums[moved] + part if moved in sums else part
        return sums

    def _sums(self, source: str, rows: SummedAxis, columns: SummedAxis, name: str) -> str:
        """The tensor of window sums, a public map of the source."""
        key = (source, rows.gathered, rows.windows, rows.factors, columns.gathered, columns.windows, columns.factors)
        if key not in self._pooled:
            taken = sum(pool.startswith(f"{name}.pool({source})") for pool in self._steps)
            pooled = f"{name}.pool({source})" + (f".{taken}" if taken else "")
            if rows.gathered or columns.gathered:
                selection = Selection.whole(source, self._shapes[source])
                gathered = selection.selected(None, rows.gathered or None, columns.gathered or None)
                source = self.combine(f"{pooled}.runs", (gathered,))
            self._add(Pool(pooled, source, rows.windows, rows.factors, columns.windows, columns.factors))
            self._pooled[key] = pooled
        return self._pooled[key]

    def relu(self, node: Node, name: str) -> Node:
        """Nodes that several layers pass through a ReLU are passed once."""
        if id(node) not in self._activated:
            self._activated[id(node)] = node, self.activate(Relu(name, self.compared(node, f"{name}.input")))
        return self._activated[id(node)][1]

    def is_wide(self, name: str) -> bool:
        """Return whether no truncation lies between the tensor and a linear map, a gate or a sum with factors: as a
        source it would widen the ring."""
        waiting, seen = [name], {name}
        while waiting:
            step = self._steps.get(waiting.pop())
            if isinstance(step, Linear | Gate) or (isinstance(step, Combine) and step.factors):
                return True
            if isinstance(step, PublicMap) or (isinstance(step, Relu) and step.comparison):
                waiting += {*step.sources} - seen  # max pools in a row have more paths than anybody could go
                seen.update(step.sources)
        return False

    def truncated(self, node: Node, name: str) -> Node:
        """The same with as many bits as an activation has, where it has more."""
        found = self.named(node, f"{name}.input")
        if not self.is_wide(found):
            return self.tensor(found)
        return self.activate(Truncate(name, self.compared(self.tensor(found), f"{name}.input"), 0))

    def curve(self, node: Node, function: str, name: str) -> Node:
        """A smooth function, which is approximated when its range is known (approximate.py)."""
        return self.activate(Curve(name, self.compared(node, f"{name}.input"), function))

    def gated(self, node: Node, gate: Node, name: str) -> Node:
        """Times one number for each channel; all three have as many bits as an activation has."""
        source, by = (self.truncated(own, f"{name}.{word}") for own, word in ((node, "map"), (gate, "gate")))
        return self.truncated(self.multiplied(source, by, name), f"{name}.truncated")

    def multiplied(self, node: Node, gate: Node, name: str) -> Node:
        """The same of tensors, with all bits of the product."""
        return self.activate(Gate(name, self.named(node, name), self.named(gate, name)))

    def activate(self, step: Relu | Square | Truncate | Gate | Curve | Pool) -> Node:
        self._add(step)
        return self.tensor(step.name)

    def finish(self, node: Node, name: str) -> Fused:
        """Make the one output, a tensor of this name."""
        return self.finish_all([self.output(node, name, Output(LOGITS, name))])

    def output(self, node: Node, name: str, output: Output) -> Output:
        """Make an output's tensor, of this name, in a step of its own."""
        self._make(node, name)
        return replace(output, source=name)

    def finish_all(self, outputs: Sequence[Output]) -> Fused:
        graph = Graph(self.image, tuple(self._steps.values()), outputs=tuple(outputs))
        return Fused(graph, self._weights, tuple(self._joints))

    def as_tensor(self, node: Node, name: str) -> Node:
        """The same values, read from a tensor that a step makes."""
        return self.tensor(self.named(node, name))

    def named(self, node: Node, name: str) -> str:
        """The tensor's name: that of an earlier one where the node is one."""
        if node.is_public and len(node.parts) == 1 and node.parts[0].is_whole:
            return node.parts[0].source
        if id(node) not in self._tensors:
            self._make(node, name)
            self._tensors[id(node)] = node, name
        return self._tensors[id(node)][1]

    def compared(self, node: Node, name: str) -> str:
        """A tensor that can have a range, for a nonlinearity to read."""
        found = self.named(node, name)
        if not isinstance(self._steps.get(found), Linear | Combine):
            return self.combine(name, (Selection.whole(found, self._shapes[found]),))
        return found

    def tensor(self, name: str) -> Node:
        shape = self._shapes[name]
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
        self._add(step := Combine(name, summands, shape, constants=zeros, factors=unknown))
        if constants is not None:
            self._weights[step.constants_name] = np.asarray(constants, np.float64)
        if factors is not None:
            self._weights[step.factors_name] = np.asarray(factors, np.float64)
        return name

    def gather(self, name: str, source: str, shape: Shape, indices: NDArray[np.integer[Any]]) -> str:
        """Single elements of a tensor, in any order, as a step."""
        self._add(Gather(name, source, shape, tuple(indices.tolist())))
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
                name = self.combine(f"{part.source}[{len(self._steps)}]", (part,))
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

    def _make(self, node: Node, name: str) -> None:
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
        self._add(step := Linear(name, tuple(terms), node.shape))
        for number, array in enumerate(weights):
            self._weights[step.weight_name(number)] = array
        self._weights[step.bias_name] = node.bias

    def _add(self, step: Step) -> None:
        assert step.name not in self._steps
        self._steps[step.name] = step
        self._shapes[step.name] = made_shape(step, self._shapes)

    def _crop(self, crop: Crop) -> str:
        """The tensor's name; a crop is a public map that sums over windows of one element."""
        shape = self._shapes[crop.source]
        rows, columns = crop.rows or (0, shape.height), crop.columns or (0, shape.width)
        if (rows, columns) == ((0, shape.height), (0, shape.width)):
            return crop.source
        name = f"{crop.source}[{rows[0]}:{rows[1]},{columns[0]}:{columns[1]}]"
        if name not in self._shapes:
            spans = [tuple((n, n + 1) for n in range(*run)) for run in (rows, columns)]
            self._add(Pool(name, crop.source, spans[0], (1,) * len(spans[0]), spans[1], (1,) * len(spans[1])))
        return name


def truncated_joint(name: str) -> str:
    """The tensor of a joint with as many bits as an activation has: its name, and the cut that makes it."""
    return f"{name}.truncated"


def _is_dense(reads: Reads) -> bool:
    """Return whether it slides over every element of its source."""
    return all(isinstance(axis, Sliding) and axis.stride == 1 for axis in (reads.rows, reads.columns))
