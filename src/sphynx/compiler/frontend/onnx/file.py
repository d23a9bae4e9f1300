"""Reads an ONNX file into operators: constants as arrays, what reads them alone folded. No torch."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sphynx.compiler.frontend.onnx.external import load_external
from sphynx.compiler.frontend.onnx.feed import Constant, Feed, feed_of, shown
from sphynx.compiler.frontend.onnx.fold import folded
from sphynx.compiler.frontend.operators.graph import OperatorGraph, assemble
from sphynx.compiler.frontend.operators.network import OperatorNetwork
from sphynx.compiler.frontend.operators.operation import ROUNDING_CAST, Call
from sphynx.errors import InputError, MissingPartError
from sphynx.program.convolve import Array
from sphynx.program.outputs import MAX_OUTPUTS

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto

_FLOATS = (1, 10, 11, 16)  # of kinds of numbers: FLOAT, FLOAT16, DOUBLE, BFLOAT16
OLDEST_OPSET = 9  # before it, batch norm, Dropout and Add meant other things
_EXPORT = "Export the network again, as one graph from an image [n, channels, height, width] to logits [n, classes]."


def read_network(
    path: Path,
    *,
    approximate: bool = False,
    shape: Sequence[int] | None = None,
    inputs: Mapping[str, Constant] | None = None,
    heads: Sequence[str] = (),
) -> OperatorNetwork:
    """`approximate` allows smooth activations; `shape` fills sizes that the file leaves open, `inputs` are constants
    for further inputs (feed.py), `heads` are the values that are wanted, by default all outputs."""
    return OperatorNetwork(load_graph(path, shape, inputs, heads)[0], approximate=approximate)


def load_graph(
    path: Path,
    shape: Sequence[int] | None = None,
    inputs: Mapping[str, Constant] | None = None,
    heads: Sequence[str] = (),
) -> tuple[OperatorGraph, Feed]:
    """Load the graph, and how the file's inputs are fed."""
    if not path.is_file():
        raise InputError("there is no such file", where=str(path), remedy="Give the path of an .onnx file.")
    model = _model(path)
    graph = model.graph
    try:
        constants = dict(_constants(graph, path))
    except (ValueError, TypeError, KeyError) as error:
        raise _invalid(f"a constant cannot be read: {error}", path) from None
    feed = feed_of(graph, constants, str(path), shape, inputs)
    wanted = _wanted(graph, heads, str(path))
    assembled = assemble(
        list(_calls(graph)),
        {**constants, **feed.constants},
        name=path.stem,
        where=str(path),
        image=feed.image,
        input=feed.input,
        view=feed.viewed,
        outputs={name: name for name in wanted},
        opset=_opset(model),
    )
    return assembled, feed


def describe(path: Path) -> tuple[list[str], list[str]]:
    """List the inputs and the outputs, as the file declares them."""
    graph = _model(path).graph
    held = {tensor.name for tensor in graph.initializer}
    return [shown(value) for value in graph.input if value.name not in held], list(map(shown, graph.output))


def _wanted(graph: GraphProto, heads: Sequence[str], where: str) -> list[str]:
    """The values that the network is to give: its outputs, or some that its nodes make."""
    outputs = [value.name for value in graph.output]
    made = [*outputs, *(name for node in graph.node for name in node.output if name and name not in outputs)]
    for head in heads:
        if head not in made:
            near = difflib.get_close_matches(head, made, 1)
            raise InputError(
                f"it has no value {head}; its outputs are {', '.join(outputs)}",
                where=where,
                remedy=f"Did you mean {near[0]}?" if near else "Name outputs, or values that its nodes make.",
            )
    found = list(dict.fromkeys(heads)) or outputs
    if not 1 <= len(found) <= MAX_OUTPUTS:
        raise InputError(
            f"it has {len(found)} outputs",
            where=where,
            remedy=f"Choose 1 to {MAX_OUTPUTS} of them with `heads`.",
        )
    return found


def runnable(path: Path, outputs: Sequence[str] = ()) -> str | bytes:
    """Give what ONNX Runtime may run: the file, or a copy with other outputs, and without nodes that these do not need.
    It would compute them all the same, and nobody has checked how large they are."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    declared = {value.name: value for value in model.graph.output}
    names = list(outputs) or [*declared]
    wanted, kept = {*names}, []
    for node in reversed(model.graph.node):
        if wanted.intersection(node.output):
            wanted.update(node.input)
            kept.append(node)
    if len(kept) == len(model.graph.node) and names == [*declared]:
        return str(path)
    load_external(model, path)
    copies = [type(node).FromString(node.SerializeToString()) for node in reversed(kept)]
    del model.graph.node[:]
    model.graph.node.extend(copies)
    shown = [declared.get(name, onnx.ValueInfoProto(name=name)) for name in names]
    kinds = [type(value).FromString(value.SerializeToString()) for value in shown]
    del model.graph.output[:]
    model.graph.output.extend(kinds)
    return bytes(model.SerializeToString())


def _model(path: Path) -> ModelProto:
    try:
        import onnx
        from google.protobuf.message import DecodeError
    except ImportError:
        raise MissingPartError("reading ONNX needs the package onnx", remedy="pip install onnx") from None
    try:
        model = onnx.load(path, load_external_data=False)
        load_external(model, path)
        onnx.checker.check_model(model)
    except (OSError, ValueError, DecodeError, onnx.checker.ValidationError) as error:
        fault = (str(error).splitlines() or [type(error).__name__])[0]
        raise _invalid(fault, path) from None
    opset = _opset(model)
    if opset < OLDEST_OPSET:
        raise InputError(
            f"it has opset {opset}", where=str(path), remedy=f"Export it for opset {OLDEST_OPSET} or newer."
        )
    return model


def _opset(model: ModelProto) -> int:
    return next((used.version for used in model.opset_import if used.domain in ("", "ai.onnx")), 0)


def _invalid(fault: str, path: Path) -> InputError:
    return InputError(f"it is not a valid ONNX file ({fault})", where=str(path), remedy=_EXPORT)


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


def _calls(graph: GraphProto) -> Iterator[Call]:
    from onnx.helper import get_attribute_value

    for number, node in enumerate(graph.node):
        named = str(node.name)  # bytes where it is not UTF-8
        kind = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        attributes = {attribute.name: get_attribute_value(attribute) for attribute in node.attribute}
        yield Call(
            kind=ROUNDING_CAST if kind == "Cast" and attributes.get("to") not in _FLOATS else kind,
            name=named,
            place=f"node {named}" if named else f"node {number}, which makes {node.output[0]}",
            inputs=tuple(node.input),
            outputs=tuple(node.output),
            attributes=attributes,
            fold=partial(folded, node),
        )
