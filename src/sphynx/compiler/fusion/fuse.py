"""Builds the fused graph: nodes stay symbolic (affine.py) until a nonlinearity, or a cut, needs their values.

`convolve`, `scale`, `shift`, `average` and `joint` are what a network's walker calls (frontend/).
`cuts` names joints whose node becomes a tensor of its own all the same, which makes a chain of two maps, where that is
cheaper (choose.py). A chain widens the ring; `truncated_joint` of a name in `cuts` truncates the tensor too.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from sphynx.compiler.fusion.affine import Floats, Node, Reads, Window, compose, compose_outline, consolidated, used_taps
from sphynx.compiler.fusion.graph_builder import GraphBuilder
from sphynx.compiler.fusion.kernel_axis import Sliding
from sphynx.compiler.fusion.selection import Selection
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
from sphynx.program.ir import INPUT, Combine, Curve, Gate, Graph, Linear, Output, Pool, Relu, Square, Truncate
from sphynx.program.outputs import LOGITS
from sphynx.space.tally import Shape

BOTTLENECK = 2  # as many times fewer channels than its source has: then the source costs more to read


@dataclass(frozen=True, eq=False)
class Fused:
    """A network in real numbers: the steps of a program, and their weights by name.

    `joints` are the places where it could be cut.
    """

    graph: Graph
    weights: dict[str, Floats]
    joints: tuple[str, ...]


class Fuser(GraphBuilder):
    def __init__(
        self,
        image: Shape,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        *,
        cuts: Container[str] = (),
        outline: bool = False,
    ) -> None:
        super().__init__(image, outline=outline)
        self._cuts = cuts
        self._joints: list[str] = []
        self._tensors: dict[int, tuple[Node, str]] = {}  # by identity: a node and its tensor
        self._activated: dict[int, tuple[Node, Node]] = {}
        self._pooled: dict[tuple[object, ...], str] = {}
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
            node = self.tensor(self.combine(f"{node.parts[0].source}[{len(self.steps)}]", node.parts))
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
            axes, lengths = (reads.rows, reads.columns), self.shapes[reads.source][1:]
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
            taken = sum(pool.startswith(f"{name}.pool({source})") for pool in self.steps)
            pooled = f"{name}.pool({source})" + (f".{taken}" if taken else "")
            if rows.gathered or columns.gathered:
                selection = Selection.whole(source, self.shapes[source])
                gathered = selection.selected(None, rows.gathered or None, columns.gathered or None)
                source = self.combine(f"{pooled}.runs", (gathered,))
            self.add(Pool(pooled, source, rows.windows, rows.factors, columns.windows, columns.factors))
            self._pooled[key] = pooled
        return self._pooled[key]

    def relu(self, node: Node, name: str) -> Node:
        """Nodes that several layers pass through a ReLU are passed once."""
        if id(node) not in self._activated:
            self._activated[id(node)] = node, self.activate(Relu(name, self.compared(node, f"{name}.input")))
        return self._activated[id(node)][1]

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
        self.add(step)
        return self.tensor(step.name)

    def finish(self, node: Node, name: str) -> Fused:
        """Make the one output, a tensor of this name."""
        return self.finish_all([self.output(node, name, Output(LOGITS, name))])

    def output(self, node: Node, name: str, output: Output) -> Output:
        """Make an output's tensor, of this name, in a step of its own."""
        self.make(node, name)
        return replace(output, source=name)

    def finish_all(self, outputs: Sequence[Output]) -> Fused:
        graph = Graph(self.image, tuple(self.steps.values()), outputs=tuple(outputs))
        return Fused(graph, self.weights, tuple(self._joints))

    def as_tensor(self, node: Node, name: str) -> Node:
        """The same values, read from a tensor that a step makes."""
        return self.tensor(self.named(node, name))

    def named(self, node: Node, name: str) -> str:
        """The tensor's name: that of an earlier one where the node is one."""
        if node.is_public and len(node.parts) == 1 and node.parts[0].is_whole:
            return node.parts[0].source
        if id(node) not in self._tensors:
            self.make(node, name)
            self._tensors[id(node)] = node, name
        return self._tensors[id(node)][1]

    def compared(self, node: Node, name: str) -> str:
        """A tensor that can have a range, for a nonlinearity to read."""
        found = self.named(node, name)
        if not isinstance(self.steps.get(found), Linear | Combine):
            return self.combine(name, (Selection.whole(found, self.shapes[found]),))
        return found


def truncated_joint(name: str) -> str:
    """The tensor of a joint with as many bits as an activation has: its name, and the cut that makes it."""
    return f"{name}.truncated"
