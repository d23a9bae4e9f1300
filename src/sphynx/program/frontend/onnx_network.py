"""Walks an ONNX graph into a fused graph, as trace.py walks a torch network. No torch.

What it reads: convolutions (groups become dense kernels), average pools, sums, joins of channels, dense layers, batch
norm with fixed statistics, ReLU, zero padding, flattening, and what does nothing in inference. The rest is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, replace
from math import lcm
from pathlib import Path

import numpy as np

from sphynx.errors import InputError, join_faults
from sphynx.program.frontend.onnx_file import LOGITS, OnnxGraph, Operation, load_onnx
from sphynx.program.frontend.onnx_windows import Pads, pads_nothing, pool_slides, slides
from sphynx.program.fusion.affine import Floats, Node, Window
from sphynx.program.fusion.fuse import Fused, Fuser, sliding_spans
from sphynx.program.ir import MAX_EXTENT, MAX_TENSOR_SIZE
from sphynx.space.tally import Shape

NO_PADS: Pads = ((0, 0), (0, 0))
_INSTEAD = {
    "MaxPool": "Train the network with average pooling.",
    "GlobalMaxPool": "Train the network with average pooling.",
    "Softmax": "Export the network without it: the logits rank the classes alike.",
    "LogSoftmax": "Export the network without it: the logits rank the classes alike.",
    "Shape": "Flatten with torch.flatten(x, 1), or export with a batch of 1.",
}


@dataclass(frozen=True, eq=False)
class _Value:
    node: Node
    flat: bool = False  # [n, size] rather than [n, channels, height, width]
    unpadded: tuple[Node, Pads] | None = None  # what a Pad made it from


class OnnxNetwork:
    def __init__(self, graph: OnnxGraph, where: str) -> None:
        self.name, self.image, self._graph = graph.name, graph.image, graph
        unknown = [operation for operation in graph.operations if operation.kind not in _WAYS]
        if unknown:
            hints = [_INSTEAD[kind] for kind in dict.fromkeys(op.kind for op in unknown) if kind in _INSTEAD]
            raise InputError(
                join_faults([f"{operation.label}: {operation.kind} cannot be compiled" for operation in unknown]),
                where=where,
                remedy=" ".join([*hints, f"Use {', '.join(_WAYS)}."]),
            )
        numbers = {name: array for name, array in graph.constants.items() if array.dtype.kind in "fiub"}
        with np.errstate(invalid="ignore"):  # a damaged file's signalling NaNs: numbers are judged where they are used
            self._constants = {name: np.asarray(array, np.float64) for name, array in numbers.items()}

    def trace(
        self, mean: tuple[float, ...], std: tuple[float, ...], *, cuts: Container[str] = (), outline: bool = False
    ) -> Fused:
        """What the network computes, from pixels 0 .. 255 to logits, in double precision."""
        fuser = Fuser(self.image, mean, std, cuts=cuts, outline=outline)
        walker = _Walker(fuser, self._constants)
        walker.values[self._graph.input] = _Value(fuser.input)
        joints = _joints(self._graph)
        for operation in self._graph.operations:
            value = _WAYS[operation.kind](walker, operation)
            if operation.output in joints:
                value = replace(value, node=fuser.joint(value.node, operation.name))
            walker.values[operation.output] = value
        found = walker.values.get(self._graph.output)
        if found is None or found.node.shape[1:] != (1, 1):
            raise InputError(
                f"its output is {'a constant' if found is None else f'a map of {found.node.shape}'}",
                where=self._graph.output,
                remedy="Export a network that gives one number for each class.",
            )
        part = self._graph.operations[-1].part if self._graph.operations else "part.0"
        return fuser.finish(found.node, f"{part}.{LOGITS}")


def read_network(path: Path) -> OnnxNetwork:
    return OnnxNetwork(load_onnx(path), str(path))


class _Walker:
    def __init__(self, fuser: Fuser, constants: Mapping[str, Floats]) -> None:
        self.fuser, self.constants = fuser, constants
        self.values: dict[str, _Value] = {}

    def value(self, op: Operation, number: int = 0, *, flat: bool | None = None) -> _Value:
        """The feature map at one of the inputs; `flat` says of which kind it must be."""
        found = self.values.get(op.inputs[number]) if number < len(op.inputs) else None
        if found is None:
            raise op.refusal(
                f"does not read a feature map as its input {number}", "Feature maps come first, constants after them."
            )
        if flat is not None and found.flat != flat:
            wanted = "a flat vector" if flat else "a map of channels, rows and columns"
            raise op.refusal(f"does not read {wanted}", "Flatten once, between the last map and the dense layers.")
        return found

    def constant(self, op: Operation, number: int, shape: tuple[int | None, ...]) -> Floats:
        """A constant of this many dimensions, each as long as given where it is given."""
        name = op.inputs[number] if number < len(op.inputs) else ""
        if name not in self.constants:
            raise op.refusal(
                f"has no constant as its input {number}", "Export the network with its weights, for inference."
            )
        found = self.constants[name]
        if len(found.shape) != len(shape) or any(w not in (None, g) for w, g in zip(shape, found.shape, strict=True)):
            wanted = "x".join("n" if length is None else str(length) for length in shape)
            raise op.refusal(
                f"has weights of {'x'.join(map(str, found.shape)) or 'one number'}, not {wanted}",
                "Only two-dimensional convolutions and dense layers can be compiled.",
            )
        return found

    def convolution(self, op: Operation) -> _Value:
        node, groups = self.value(op, flat=False).node, int(op.attributes.get("group", 1))
        weights = self.constant(op, 1, (None, node.shape.channels // groups, None, None))
        if node.shape.channels % groups or len(weights) % groups:
            raise op.refusal(f"has {groups} groups, which do not divide its channels", "Check its attribute group.")
        rows, columns = slides(op, node.shape, weights.shape[2:])
        if rows.stride != columns.stride:
            raise op.refusal(
                f"has strides {rows.stride} and {columns.stride}", "Use the same stride for rows and columns."
            )
        dilation = rows.dilation
        if rows.dilation != columns.dilation:
            weights, dilation = _spread(weights, rows.dilation, columns.dilation), 1
        height, width = weights.shape[2:]
        size = (rows.outputs, columns.outputs)
        window = Window(height, width, *size, rows.stride, dilation, rows.before, columns.before)
        self.fits(op, Shape(len(weights), *size))
        y = self.fuser.convolve(node, weights, window, groups)
        return _Value(self.biased(op, y, 2))

    def biased(self, op: Operation, node: Node, number: int) -> Node:
        if number >= len(op.inputs) or not op.inputs[number]:
            return node
        bias = self.constant(op, number, (node.shape.channels,))
        return self.fuser.scale(node, np.ones(len(bias)), bias)

    def average_pool(self, op: Operation) -> _Value:
        value = self.value(op, flat=False)
        node, pads = value.node, NO_PADS
        counts_pads = bool(op.attributes.get("count_include_pad", 0))
        if value.unpadded and (counts_pads or pads_nothing(op)) and not op.attributes.get("ceil_mode"):
            # The zeros of a Pad are pixels to the pool that reads them: both can be one public map.
            node, pads = value.unpadded
            counts_pads = True
        axes = pool_slides(op, node.shape, pads, counts_pads=counts_pads)
        rows, columns = (
            sliding_spans(n, axis.kernel, axis.stride, axis.before, axis.outputs)
            for n, axis in zip(node.shape[1:], axes, strict=True)
        )
        if any(first >= last for first, last in (*rows, *columns)):
            raise op.refusal("has a window that sees padding alone", "Pad by less than the kernel's size.")
        factors = (lcm(*(last - first for first, last in spans)) for spans in (rows, columns))
        if not counts_pads and max(factors) > MAX_EXTENT:
            raise op.refusal("has windows of too many sizes at its border", "Use count_include_pad = 1, or pad less.")
        whole = axes[0].kernel * axes[1].kernel if counts_pads else 0
        return _Value(self.fuser.average(node, rows, columns, op.name, whole=whole))

    def global_average(self, op: Operation) -> _Value:
        node = self.value(op, flat=False).node
        return _Value(self.fuser.average(node, ((0, node.shape.height),), ((0, node.shape.width),), op.name))

    def mean(self, op: Operation) -> _Value:
        """x.mean((2, 3)), which exporters do not write as a global pool."""
        axes = op.attributes["axes"] if "axes" in op.attributes else self.constant(op, 1, (None,))
        if sorted(int(axis) % 4 for axis in axes) != [2, 3]:
            raise op.refusal("is not the mean over rows and columns", "Use it with axes 2 and 3.")
        return replace(self.global_average(op), flat=not op.attributes.get("keepdims", 1))

    def dense(self, op: Operation) -> _Value:
        """Gemm or MatMul; it reads channels, rows and columns in that order: a kernel of the whole map's size."""
        node = self.value(op, flat=True).node
        attributes = op.attributes
        if attributes.get("transA"):
            raise op.refusal("transposes its input", "Use transA = 0.")
        transposed = bool(attributes.get("transB"))
        size = node.shape.size
        weights = self.constant(op, 1, (None, size) if transposed else (size, None))
        weights = float(attributes.get("alpha", 1)) * (weights if transposed else weights.T)
        y = self.fuser.convolve(node, weights.reshape(-1, *node.shape), Window(*node.shape[1:], 1, 1))
        if len(op.inputs) < 3 or not op.inputs[2]:
            return _Value(y, flat=True)
        shift = float(attributes.get("beta", 1)) * self.spread_constant(op, 2, y.shape, flat=True)
        return _Value(self.fuser.shift(y, shift), flat=True)

    def spread_constant(self, op: Operation, number: int, shape: Shape, *, flat: bool) -> Floats:
        """Broadcast to one image of this shape, as ONNX broadcasts."""
        whole = (1, shape.size) if flat else (1, *shape)
        array = self.constants.get(op.inputs[number])
        try:
            if array is None or array.ndim > len(whole):
                raise ValueError
            return np.broadcast_to(array, whole).reshape(shape)
        except ValueError:
            raise op.refusal(
                f"cannot add its input {number} to a map of {shape}", "Add maps of one shape, or a constant."
            ) from None

    def add(self, op: Operation) -> _Value:
        if not any(name in self.values for name in op.inputs):
            raise op.refusal("adds constants alone", "Export the network with constants folded.")
        first, second = (self.values.get(name) for name in op.inputs)
        if first and second:
            if (first.node.shape, first.flat) != (second.node.shape, second.flat):
                raise op.refusal(
                    f"adds maps of {first.node.shape} and {second.node.shape}", "Add maps of one shape, or a constant."
                )
            return _Value(first.node + second.node, first.flat)
        number = 1 if first else 0
        value = self.value(op, 1 - number)
        shift = self.spread_constant(op, number, value.node.shape, flat=value.flat)
        return _Value(self.fuser.shift(value.node, shift), value.flat)

    def concat(self, op: Operation) -> _Value:
        values = [self.value(op, number) for number in range(len(op.inputs))]
        flat, size = values[0].flat, values[0].node.shape[1:]
        axis = int(op.attributes["axis"])
        if axis not in (1, 1 - (2 if flat else 4)) or any((v.flat, v.node.shape[1:]) != (flat, size) for v in values):
            raise op.refusal("does not join channels of maps of one size", "Join channels only: axis = 1.")
        if flat and size != (1, 1):
            raise op.refusal("joins flattened maps", "Join the maps first, then flatten them.")
        total = sum(value.node.shape.channels for value in values)
        first, joined = 0, None
        for value in values:
            places = np.eye(total, value.node.shape.channels, -first)[:, :, None, None]
            part = self.fuser.convolve(value.node, places, Window(1, 1, *size))
            joined = part if joined is None else joined + part
            first += value.node.shape.channels
        assert joined is not None
        return _Value(joined, flat)

    def batch_norm(self, op: Operation) -> _Value:
        value = self.value(op)
        if op.attributes.get("training_mode"):
            raise op.refusal("has no fixed statistics", "Export the network for inference (model.eval()).")
        if value.flat and value.node.shape[1:] != (1, 1):
            raise op.refusal("reads a flattened map", "Normalise before flattening, or after a dense layer.")
        weight, bias, mean, variance = (
            self.constant(op, number, (value.node.shape.channels,)) for number in range(1, 5)
        )
        factor = weight / np.sqrt(variance + float(op.attributes.get("epsilon", 1e-5)))
        return _Value(self.fuser.scale(value.node, factor, bias - mean * factor), value.flat)

    def relu(self, op: Operation) -> _Value:
        value = self.value(op)
        return _Value(self.fuser.relu(value.node, f"{op.name}.activation"), value.flat)

    def flatten(self, op: Operation) -> _Value:
        value = self.value(op)
        if int(op.attributes.get("axis", 1)) != 1:
            raise op.refusal("does not keep images apart", "Flatten with axis = 1.")
        return _Value(value.node, flat=True)

    def reshape(self, op: Operation) -> _Value:
        value = self.value(op)
        target = [int(length) for length in self.constant(op, 1, (None,))]
        batches = (-1, 1) if op.attributes.get("allowzero") else (-1, 0, 1)
        size = value.node.shape.size
        if len(target) != 2 or target[0] not in batches or target[1] not in (-1, size) or target == [-1, -1]:
            raise op.refusal(f"makes {target} of a map of {value.node.shape}", f"Flatten it: [-1, {size}].")
        return _Value(value.node, flat=True)

    def pad(self, op: Operation) -> _Value:
        node = self.value(op, flat=False).node
        (top, bottom), (left, right) = pads = self.zero_pads(op)
        shape = Shape(node.shape.channels, top + node.shape.height + bottom, left + node.shape.width + right)
        self.fits(op, shape)
        same = np.eye(shape.channels)[:, :, None, None]
        window = Window(1, 1, *shape[1:], top=top, left=left)
        return _Value(self.fuser.convolve(node, same, window), unpadded=(node, pads))

    def zero_pads(self, op: Operation) -> Pads:
        remedy = "Pad rows and columns with zeros."
        if op.attributes.get("mode", b"constant") != b"constant":
            raise op.refusal(f"is of mode {op.attributes['mode'].decode(errors='replace')}", remedy)
        # Before opset 11 amounts and value were attributes.
        filled = len(op.inputs) > 2 and op.inputs[2] and self.constants.get(op.inputs[2], np.ones(1)).any()
        if filled or op.attributes.get("value"):
            raise op.refusal("pads with another number than 0", remedy)
        amounts = [int(n) for n in op.attributes.get("pads") or self.constant(op, 1, (None,))]
        axes = [0, 1, 2, 3]
        if len(op.inputs) > 3 and op.inputs[3]:
            axes = [int(axis) % 4 for axis in self.constant(op, 3, (None,))]
        by_axis = dict.fromkeys(range(4), (0, 0))
        if len(amounts) == 2 * len(axes):
            by_axis.update(zip(axes, zip(amounts[: len(axes)], amounts[len(axes) :], strict=True), strict=True))
        if len(amounts) != 2 * len(axes) or min(amounts) < 0 or any((*by_axis[0], *by_axis[1])):
            raise op.refusal(f"pads by {amounts}", remedy)
        return by_axis[2], by_axis[3]

    def nothing(self, op: Operation) -> _Value:
        return self.value(op)

    def dropout(self, op: Operation) -> _Value:
        training = op.inputs[2] if len(op.inputs) > 2 else ""
        if training and self.constants.get(training, np.ones(1)).any():
            raise op.refusal("drops at random", "Export the network for inference (model.eval()).")
        return self.value(op)

    def fits(self, op: Operation, shape: Shape) -> None:
        if min(shape) < 1 or shape.size > MAX_TENSOR_SIZE:
            raise op.refusal(f"makes a map of {shape}", "Check its kernel and padding against the image's size.")


_WAYS: dict[str, Callable[[_Walker, Operation], _Value]] = {
    "Conv": _Walker.convolution,
    "AveragePool": _Walker.average_pool,
    "GlobalAveragePool": _Walker.global_average,
    "ReduceMean": _Walker.mean,
    "Gemm": _Walker.dense,
    "MatMul": _Walker.dense,
    "Add": _Walker.add,
    "Concat": _Walker.concat,
    "BatchNormalization": _Walker.batch_norm,
    "Relu": _Walker.relu,
    "Flatten": _Walker.flatten,
    "Reshape": _Walker.reshape,
    "Pad": _Walker.pad,
    "Identity": _Walker.nothing,
    "Dropout": _Walker.dropout,
}


def _joints(graph: OnnxGraph) -> set[str]:
    """Values that a convolution or dense layer reads; what only moves or pads them is looked through."""
    found: set[str] = set()
    for operation in reversed(graph.operations):
        if operation.kind in ("Conv", "Gemm", "MatMul"):
            found.add(operation.inputs[0])
        elif operation.output in found and operation.kind in ("Flatten", "Reshape", "Pad", "Identity", "Dropout"):
            found.remove(operation.output)
            found.add(operation.inputs[0])
    return found


def _spread(weights: Floats, row_dilation: int, column_dilation: int) -> Floats:
    """With the zeros between dilated taps written out."""
    outputs, inputs, rows, columns = weights.shape
    wide = np.zeros((outputs, inputs, row_dilation * (rows - 1) + 1, column_dilation * (columns - 1) + 1))
    wide[:, :, ::row_dilation, ::column_dilation] = weights
    return wide
