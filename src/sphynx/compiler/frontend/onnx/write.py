"""A graph of operators as an ONNX file: what a torch module computes, for every other runtime. No torch.

The operators are ONNX's own but for two: a rearrangement becomes a Reshape, with a Gather of all elements where their
order changes, and an adaptive pool a plain one, or products with constants where its windows differ. Numbers are of
single precision, and the batch is open.
"""

from __future__ import annotations

from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.frontend.operators.finals import FINALS
from sphynx.compiler.frontend.operators.graph import OperatorGraph
from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.fusion.window_sums import adaptive_spans
from sphynx.errors import DiskError, InputError, MissingPartError
from sphynx.program.convolve import Array
from sphynx.version import __version__

OPSET = 17
IR_VERSION = 8  # of that opset's time: newer ones are refused by older runtimes
INPUT, OUTPUT = "image", "logits"
_WRITTEN = (
    "Conv",
    "ConvTranspose",
    "AveragePool",
    "GlobalAveragePool",
    "MaxPool",
    "GlobalMaxPool",
    "ReduceMean",
    "ReduceSum",
    "Gemm",
    "MatMul",
    "BatchNormalization",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Neg",
    "Relu",
    "Clip",
    "LeakyRelu",
    "PRelu",
    "HardSigmoid",
    "HardSwish",
    "Sigmoid",
    "Tanh",
    "Elu",
    "Softplus",
    "Concat",
    "Flatten",
    "Pad",
    "Resize",
    "Identity",
)
# Which inputs are whole numbers; all other constants are floats, also those that torch wrote as integers.
_WHOLE = {("Pad", 1), ("Resize", 3), ("ReduceSum", 1)}


def write_onnx(graph: OperatorGraph, path: Path, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
    """From pixels / 255 [n, channels, height, width] to logits [n, classes]: it normalises them itself."""
    try:
        import onnx
        from onnx import helper, numpy_helper
    except ImportError:
        raise MissingPartError("writing ONNX needs the package onnx", remedy="pip install onnx") from None
    unknown = sorted({op.kind for op in graph.operations} - {*_WRITTEN, "Rearrange", "AdaptiveAveragePool"})
    if unknown:
        raise InputError(
            f"{', '.join(unknown)} cannot be written for opset {OPSET}",
            where=graph.where,
            remedy="Use torch.onnx.export.",
        )
    writer = _Writer(graph)
    by_channel = (-1, 1, 1)
    shifted = writer.node("Sub", INPUT, writer.constant(np.asarray(mean, np.float32).reshape(by_channel)))
    scaled = writer.node("Div", shifted, writer.constant(np.asarray(std, np.float32).reshape(by_channel)))
    writer.names[graph.input] = scaled
    for operation in graph.operations:
        writer.write(operation)
    (end,) = graph.ends
    last = writer.names[end.value]
    for kind, final in FINALS.items():
        last = writer.node(kind, last) if final == end.final else last
    writer.node("Identity", last, output=OUTPUT)
    image = helper.make_tensor_value_info(INPUT, onnx.TensorProto.FLOAT, ["n", *graph.image])
    logits = helper.make_tensor_value_info(OUTPUT, onnx.TensorProto.FLOAT, ["n", "classes"])
    nodes = [helper.make_node(kind, ins, [out], out, **attributes) for kind, ins, out, attributes in writer.nodes]
    weights = [numpy_helper.from_array(array, name) for name, array in writer.constants.items()]
    model = helper.make_model(
        helper.make_graph(nodes, graph.name or "network", [image], [logits], weights),
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="sphynx",
        producer_version=__version__,
    )
    onnx.checker.check_model(model)
    try:
        path.write_bytes(model.SerializeToString())
    except OSError as error:
        what = f"it cannot be written ({error.strerror})"
        raise DiskError(what, where=str(path), remedy="Choose another file.") from None


class _Writer:
    def __init__(self, graph: OperatorGraph) -> None:
        self.graph = graph
        self.nodes: list[tuple[str, list[str], str, dict[str, Any]]] = []
        self.constants: dict[str, Array] = {}
        self.names: dict[str, str] = {}  # of maps, in the file, by their names in the graph

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        output = output or f"{kind.lower()}_{len(self.nodes)}"
        self.nodes.append((kind, list(inputs), output, attributes))
        return output

    def constant(self, array: NDArray[Any]) -> str:
        name = f"constant_{len(self.constants)}"
        self.constants[name] = np.ascontiguousarray(array).reshape(array.shape)
        return name

    def write(self, op: Operation) -> None:
        source = self.names.get(op.inputs[0], "")
        if op.kind == "Rearrange":
            for name, made in zip(op.outputs, self._rearrange(op, source), strict=True):
                self.names[name] = made
        elif op.kind == "AdaptiveAveragePool":
            self.names[op.outputs[0]] = self._adaptive(op, source)
        else:
            inputs = [self._input(op, number, name) for number, name in enumerate(op.inputs)]
            self.names[op.outputs[0]] = self.node(op.kind, *inputs, **op.attributes)

    def _input(self, op: Operation, number: int, name: str) -> str:
        if not name or name in self.names:
            return self.names.get(name, "")
        kind = np.int64 if (op.kind, number) in _WHOLE else np.float32
        return self.constant(self.graph.constants[name].astype(kind))

    def _rearrange(self, op: Operation, source: str) -> list[str]:
        """An order becomes a Gather of all elements, unless it is the one they have."""
        shape: tuple[int, ...] = op.attributes["shape"]
        found = []
        for order in op.attributes["moved"](np.arange(prod(shape)).reshape(shape)):
            value = source
            if order.size != prod(shape) or (order.reshape(-1) != np.arange(order.size)).any():
                flat = self.node("Reshape", source, self.constant(np.array([-1, prod(shape)])))
                value = self.node("Gather", flat, self.constant(order.reshape(-1)), axis=1)
            found.append(self.node("Reshape", value, self.constant(np.array([-1, *order.shape[1:]]))))
        return found

    def _adaptive(self, op: Operation, source: str) -> str:
        lengths, sizes = op.attributes["shape"][-2:], op.attributes["output_size"]
        if all(length % size == 0 for length, size in zip(lengths, sizes, strict=True)):
            kernel = [length // size for length, size in zip(lengths, sizes, strict=True)]
            return self.node("AveragePool", source, kernel_shape=kernel, strides=kernel)
        rows, columns = (_means(length, size) for length, size in zip(lengths, sizes, strict=True))
        return self.node("MatMul", self.node("MatMul", self.constant(rows), source), self.constant(columns.T))


def _means(length: int, size: int) -> NDArray[np.float32]:
    """[size, length]: each row takes the mean of its window."""
    found = np.zeros((size, length), np.float32)
    for row, (first, last) in zip(found, adaptive_spans(length, size), strict=True):
        row[first:last] = 1 / (last - first)
    return found
