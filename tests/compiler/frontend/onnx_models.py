"""Small ONNX networks with random weights, made by hand as exporters make them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 17


class Maker:
    """Appends nodes; each method gives the name of the value that it makes."""

    def __init__(self, image: Sequence[int | str] = ("n", 1, 8, 8), *, seed: int = 0) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.image = list(image)

    def constant(self, array: NDArray[Any] | list[int]) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def normal(self, *shape: int, scale: float = 1.0) -> str:
        return self.constant((scale * self.random.normal(size=shape)).astype(np.float32))

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [f"{name}_out"], name, **attributes))
        return f"{name}_out"

    def conv(self, x: str, inputs: int, outputs: int, kernel: int | tuple[int, int] = 3, **attributes: Any) -> str:
        rows, columns = (kernel, kernel) if isinstance(kernel, int) else kernel
        inputs //= attributes.get("group", 1)
        scale = (inputs * rows * columns) ** -0.5
        weights = self.normal(outputs, inputs, rows, columns, scale=scale)
        return self.node("Conv", x, weights, self.normal(outputs, scale=0.2), **attributes)

    def norm(self, x: str, channels: int) -> str:
        variance = self.constant(self.random.uniform(0.5, 2, channels).astype(np.float32))
        return self.node("BatchNormalization", x, *(self.normal(channels) for _ in range(3)), variance, epsilon=1e-3)

    def dense(self, x: str, inputs: int, outputs: int, **attributes: Any) -> str:
        weights = self.normal(*((outputs, inputs) if attributes.get("transB") else (inputs, outputs)))
        return self.node("Gemm", x, weights, self.normal(outputs), **attributes)

    def model(self, output: str, opset: int = OPSET) -> onnx.ModelProto:
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, self.image)
        y = helper.make_tensor_value_info(output, TensorProto.FLOAT, ["n", "classes"])
        graph = helper.make_graph(self.nodes, "made", [x], [y], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def plain_cnn(image: Sequence[int | str] = ("n", 1, 8, 8)) -> onnx.ModelProto:
    make = Maker(image)
    x = make.node("Relu", make.conv("x", 1, 6, pads=[1, 1, 1, 1]))
    x = make.node("Relu", make.conv(x, 6, 8, strides=[2, 2], pads=[1, 1, 1, 1]))
    x = make.node("Dropout", make.node("Identity", x))
    x = make.node("Relu", make.dense(make.node("Flatten", x), 128, 16, transB=1))
    return make.model(make.dense(x, 16, 10, alpha=0.5, beta=2.0))


def residual() -> onnx.ModelProto:
    make = Maker((1, 3, 9, 7))
    x = make.node("Relu", make.norm(make.conv("x", 3, 4, pads=[1, 1, 1, 1]), 4))
    long = make.node("Relu", make.norm(make.conv(x, 4, 6, strides=[2, 2], pads=[1, 1, 1, 1]), 6))
    long = make.norm(make.conv(long, 6, 6, pads=[1, 1, 1, 1]), 6)
    short = make.norm(make.conv(x, 4, 6, 1, strides=[2, 2]), 6)
    x = make.node("Relu", make.node("Add", long, short))
    x = make.node("GlobalAveragePool", make.conv(x, 6, 6, pads=[1, 1, 1, 1], group=3))
    return make.model(make.dense(make.node("Reshape", x, make.constant([0, -1])), 6, 5))


def joined() -> onnx.ModelProto:
    """Paths of two convolutions without a ReLU between them, joined; a sum of a constant map; MatMul and Add."""
    make = Maker(("n", 2, 8, 8))
    stem = make.conv("x", 2, 3, pads=[1, 1, 1, 1])
    first = make.conv(stem, 3, 2, (3, 5), dilations=[2, 1], auto_pad="SAME_UPPER")
    second = make.norm(make.conv(stem, 3, 4, pads=[1, 1, 1, 1]), 4)
    x = make.node("Concat", first, second, stem, axis=1)
    x = make.node("Relu", make.node("Add", make.normal(1, 8, 8), x))
    x = make.node("Pad", x, make.constant([0, 0, 1, 0, 0, 0, 0, 2]))
    x = make.node("Relu", make.conv(x, 9, 4, auto_pad="SAME_LOWER", strides=[2, 2]))
    x = make.node("MatMul", make.node("Flatten", x), make.normal(100, 12))
    low, high = make.node("Relu", make.node("Add", x, make.normal(12))), make.node("Add", x, x)
    return make.model(make.dense(make.node("Concat", low, high, axis=-1), 24, 7))


def write(model: onnx.ModelProto, path: Path) -> Path:
    path.write_bytes(model.SerializeToString())
    return path
