"""Fold operations on constants by ONNX's reference evaluator, after telling how large the result will be. No torch.

ONNX's shape inference knows what an operator will make of constants, whichever operator it is: nothing is computed
whose size it does not tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.sizes import CHECK_SIZES, Allowance
from sphynx.program.convolve import Array

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, ValueInfoProto

_AGAIN = "Export the network with constants folded."
_SHAPES = 1024  # elements: constants that may be lengths, axes or pads
_FEW = 1 << 16  # elements of what the evaluator computes in loops of Python
_FEWER_THAN_GIVEN = ("NonZero", "Compress", "Unique")  # for each axis: how many, only the values tell
# What numpy computes whole, as exporters need it for shapes and coordinates.
_WHOLE = frozenset((
    "Abs", "Add", "And", "BatchNormalization", "Cast", "Ceil", "Clip", "Concat", "Constant", "ConstantOfShape", "Cos",
    "Div", "Dropout", "Equal", "Erf", "Exp", "Expand", "EyeLike", "Flatten", "Floor", "Gather", "Gemm", "Greater",
    "GreaterOrEqual", "Identity", "IsNaN", "Less", "LessOrEqual", "Log", "MatMul", "Max", "Mean", "Min", "Mod", "Mul",
    "Neg", "NonZero", "Not", "Or", "Pad", "Pow", "Range", "Reciprocal", "ReduceMax", "ReduceMean", "ReduceMin",
    "ReduceProd", "ReduceSum", "Relu", "Reshape", "Round", "Shape", "Sigmoid", "Sign", "Sin", "Size", "Slice",
    "Softmax", "Split", "Sqrt", "Squeeze", "Sub", "Sum", "Tanh", "Tile", "Transpose", "Trilu", "Unsqueeze", "Where",
    "Xor",
))  # fmt: skip


def folded(
    node: NodeProto, operation: Operation, constants: Mapping[str, Array], allowance: Allowance
) -> dict[str, Array]:
    """Refuse what would exceed the allowance, and what decides by itself how long it runs."""
    from onnx.reference import ReferenceEvaluator

    inputs = [name for name in dict.fromkeys(operation.inputs) if name]
    if any(name not in constants for name in inputs):
        raise operation.refusal("reads a value that no node computes", _AGAIN)
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
        raise operation.refusal("cannot be folded, since it holds a graph of its own", _AGAIN)
    given = {name: constants[name] for name in inputs}
    _require_room(node, operation, given, allowance)
    try:
        model = _model(node, operation, given)
        made = ReferenceEvaluator(model).run(None, given)
    except Exception as error:
        raise operation.refusal(f"cannot be folded ({type(error).__name__})", _AGAIN) from None
    return {value.name: np.asarray(array) for value, array in zip(model.graph.output, made, strict=True)}


def _model(node: NodeProto, operation: Operation, given: Mapping[str, Array], *, known: bool = False) -> ModelProto:
    """Make a model of this node alone. `known` adds its inputs' shapes, and the numbers that sizes may depend on."""
    from onnx import ValueInfoProto, helper, numpy_helper

    inputs, held = [], []
    for name, array in given.items():
        dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
        inputs.append(helper.make_tensor_value_info(name, dtype, array.shape if known else None))
        if known and array.size <= _SHAPES:
            held.append(numpy_helper.from_array(array, name))
    if known:
        outputs = [ValueInfoProto(name=name) for name in operation.outputs if name]
    else:
        outputs = [helper.make_tensor_value_info(name, 0, None) for name in operation.outputs if name]
    graph = helper.make_graph([node], "folded", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", operation.opset)])


def _require_room(node: NodeProto, operation: Operation, given: Mapping[str, Array], allowance: Allowance) -> None:
    from onnx import shape_inference

    most = sum(array.size for array in given.values())
    try:
        inferred = shape_inference.infer_shapes(_model(node, operation, given, known=True)).graph.output
    except Exception as error:
        raise operation.refusal(f"cannot be folded ({type(error).__name__})", _AGAIN) from None
    sizes = [_elements(value, most if operation.kind in _FEWER_THAN_GIVEN else None) for value in inferred]
    elements = None if None in sizes else sum(size for size in sizes if size is not None)
    is_slow = operation.kind not in _WHOLE
    if elements is None or (is_slow and max(elements, most) > _FEW) or not allowance.take(elements):
        many = "an unknown number of" if elements is None else f"{elements:,}"
        raise operation.refusal(f"makes a constant of {many} elements", CHECK_SIZES)


def _elements(value: ValueInfoProto, most: int | None) -> int | None:
    """Count what there will be; an axis of unknown length has at most `most`. None where nothing tells."""
    if not value.type.tensor_type.HasField("shape"):
        return None
    lengths = [dim.dim_value if dim.HasField("dim_value") else most for dim in value.type.tensor_type.shape.dim]
    known = [length for length in lengths if length is not None and length >= 0]
    return prod(known) if len(known) == len(lengths) else None
