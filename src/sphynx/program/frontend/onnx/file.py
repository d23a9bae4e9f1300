"""Reads an ONNX file into plain operations: constants as arrays, what the output does not need left out. No torch.

Every operation gets a name for the steps that it becomes, `part.3.conv1`. A part is what lies between ReLUs: operations
that hand each other values without a nonlinearity in between. choose.py weighs a part's cuts by the maps of that part.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sphynx.errors import InputError, MissingPartError
from sphynx.program.convolve import Array
from sphynx.program.ir import MAX_TENSOR_SIZE, Final
from sphynx.space.tally import Shape

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

LOGITS = "logits"
# Behind the logits: the client's part, which the program names.
FINALS: dict[str, Final] = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}
NONLINEAR = ("Relu", "Clip", "LeakyRelu", "PRelu", "MaxPool", "GlobalMaxPool")
OLDEST_OPSET = 9  # before it, batch norm, Dropout and Add meant other things
_EXPORT = "Export the network again, as one graph from an image [n, channels, height, width] to logits [n, classes]."


@dataclass(frozen=True, eq=False)
class Operation:
    kind: str  # the operator
    label: str  # the file and the node in it, for errors
    place: str  # the node alone
    part: str
    word: str  # unique, without a dot
    inputs: tuple[str, ...]  # empty where an optional one is left out
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    proto: NodeProto  # to fold what reads constants alone
    opset: int

    @property
    def name(self) -> str:
        return f"{self.part}.{self.word}"

    def refusal(self, what: str, remedy: str) -> InputError:
        return InputError(f"{self.kind} {what}", where=self.label, remedy=remedy)


@dataclass(frozen=True, eq=False)
class OnnxGraph:
    name: str
    image: Shape
    input: str
    output: str
    operations: tuple[Operation, ...]
    constants: Mapping[str, Array]
    final: Final  # what the client applies to the logits


def load_onnx(path: Path) -> OnnxGraph:
    model = _model(path)
    graph = model.graph
    try:
        constants = dict(_constants(graph, path))
    except (ValueError, TypeError, KeyError) as error:
        raise _invalid(f"a constant cannot be read: {error}", path) from None
    inputs = [value for value in graph.input if value.name not in constants]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise InputError(
            f"it has {len(inputs)} inputs and {len(graph.output)} outputs, not one of each",
            where=str(path),
            remedy=_EXPORT,
        )
    image = _image(inputs[0], path)
    nodes = [node for node in _needed(graph, graph.output[0].name) if node.output[0] not in constants]
    output, final = _without_final(nodes, graph.output[0].name)
    operations = tuple(_operations(nodes, _opset(model), path))
    return OnnxGraph(path.stem, image, inputs[0].name, output, operations, constants, final)


def _without_final(nodes: list[NodeProto], output: str) -> tuple[str, Final]:
    """Takes off what turns logits into probabilities; gives the logits' name."""
    final: Final = ""
    while nodes and nodes[-1].output[0] == output and nodes[-1].op_type in (*FINALS, "Identity"):
        last = nodes.pop()
        if final and last.op_type in FINALS:
            nodes.append(last)
            break
        output, final = last.input[0], FINALS.get(last.op_type, final)
    return output, final


def _model(path: Path) -> ModelProto:
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise MissingPartError("reading ONNX needs the package onnx", remedy="pip install 'sphynx[onnx]'") from None
    try:
        model = onnx.load(path)
        onnx.checker.check_model(model)
    except (OSError, ValueError, DecodeError, onnx.checker.ValidationError) as error:
        fault = (str(error).splitlines() or [type(error).__name__])[0]
        raise _invalid(fault, path) from None
    opset = _opset(model)
    if opset < OLDEST_OPSET:
        raise InputError(
            f"it is of opset {opset}", where=str(path), remedy=f"Export it for opset {OLDEST_OPSET} or newer."
        )
    return model


def _opset(model: ModelProto) -> int:
    return next((used.version for used in model.opset_import if used.domain in ("", "ai.onnx")), 0)


def _invalid(fault: str, path: Path) -> InputError:
    return InputError(f"it is no valid ONNX file ({fault})", where=str(path), remedy=_EXPORT)


def _constants(graph: GraphProto, path: Path) -> Iterator[tuple[str, Array]]:
    """Initializers, Constant nodes and what an Identity makes of either."""
    from onnx.helper import get_attribute_value
    from onnx.numpy_helper import to_array

    if graph.sparse_initializer:
        raise InputError("it has sparse weights", where=str(path), remedy="Export it with dense weights.")
    found = {tensor.name: to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant" and len(node.attribute) == 1:
            value = get_attribute_value(node.attribute[0])
            if node.attribute[0].name == "value":
                found[node.output[0]] = to_array(value)
            elif node.attribute[0].name in ("value_float", "value_floats", "value_int", "value_ints"):
                found[node.output[0]] = np.asarray(value)
        elif node.op_type == "Identity" and node.input[0] in found:
            found[node.output[0]] = found[node.input[0]]
    yield from found.items()


def _image(value: ValueInfoProto, path: Path) -> Shape:
    from onnx import TensorProto

    tensor = value.type.tensor_type
    if tensor.elem_type not in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE):
        raise InputError(f"its input {value.name} is not of floating point", where=str(path), remedy=_EXPORT)
    shown = [dim.dim_param or dim.dim_value or "?" for dim in tensor.shape.dim]
    if len(shown) != 4:
        raise InputError(f"its input {value.name} is {shown}, not an image", where=str(path), remedy=_EXPORT)
    batch, *lengths = (dim.dim_value for dim in tensor.shape.dim)
    remedy = "Export it with fixed channels, height and width; only n may be open, or else 1."
    if batch not in (0, 1) or min(lengths) < 1:
        raise InputError(f"its input {value.name} is {shown}", where=str(path), remedy=remedy)
    image = Shape(*lengths)
    if image.size > MAX_TENSOR_SIZE:
        raise InputError(f"there is no image of {image}", where=str(path), remedy=remedy)
    return image


def _needed(graph: GraphProto, output: str) -> list[NodeProto]:
    wanted, found = {output}, []
    for node in reversed(graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            found.append(node)
    return found[::-1]


def _operations(nodes: list[NodeProto], opset: int, path: Path) -> Iterator[Operation]:
    from onnx.helper import get_attribute_value

    parts = _parts(nodes)
    taken = {LOGITS}
    for number, node in enumerate(nodes):
        named = str(node.name)  # bytes where it is not UTF-8
        word = plain = re.sub(r"\W+", "_", named, flags=re.ASCII).strip("_") or f"{node.op_type}_{number}"
        while word in taken:
            word = f"{plain}_{len(taken)}"
        taken.add(word)
        place = f"node {named}" if named else f"node {number}, which makes {node.output[0]}"
        yield Operation(
            kind=node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}",
            label=f"{path}, {place}",
            place=place,
            part=f"part.{parts[number]}",
            word=word,
            inputs=tuple(node.input),
            outputs=tuple(node.output),
            attributes={attribute.name: get_attribute_value(attribute) for attribute in node.attribute},
            proto=node,
            opset=opset,
        )


def _parts(nodes: list[NodeProto]) -> list[int]:
    """The number of each node's part, in the order of their first nodes."""
    makers = {name: number for number, node in enumerate(nodes) for name in node.output}
    roots = list(range(len(nodes)))

    def root(number: int) -> int:
        while roots[number] != number:
            number = roots[number]
        return number

    for number, node in enumerate(nodes):
        for maker in (makers[name] for name in node.input if name in makers):
            if nodes[maker].op_type not in NONLINEAR:
                first, second = sorted((root(maker), root(number)))
                roots[second] = first
    numbers = {first: number for number, first in enumerate(dict.fromkeys(map(root, range(len(nodes)))))}
    return [numbers[root(number)] for number in range(len(nodes))]
