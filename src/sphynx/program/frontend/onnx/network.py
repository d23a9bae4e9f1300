"""Walks an ONNX graph into a fused graph, as torch_network.py walks a torch network. No torch.

What reads constants alone is folded by ONNX's own reference evaluator, and a map's shape is a constant: so shape
arithmetic disappears. The operators are in layers.py, arithmetic.py, moves.py, resize.py and nonlinear.py; all others
are refused, by kind.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import replace
from pathlib import Path

import numpy as np

from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.frontend.onnx import arithmetic, layers, moves, nonlinear, resize
from sphynx.program.frontend.onnx.file import LOGITS, OnnxGraph, Operation, load_onnx
from sphynx.program.frontend.onnx.refusals import refuse_unknown
from sphynx.program.frontend.onnx.value import Value
from sphynx.program.frontend.onnx.walker import Walker, Ways
from sphynx.program.fusion.fuse import Fused, Fuser

WAYS: Ways = {**layers.WAYS, **nonlinear.WAYS, **arithmetic.WAYS, **moves.WAYS, **resize.WAYS}


class OnnxNetwork:
    def __init__(self, graph: OnnxGraph, where: str) -> None:
        self.name, self.image, self.final = graph.name, graph.image, graph.final
        self._graph, self._where = graph, where
        refuse_unknown(_of_maps(graph), WAYS, where)

    def trace(
        self, mean: tuple[float, ...], std: tuple[float, ...], *, cuts: Container[str] = (), outline: bool = False
    ) -> Fused:
        """What the network computes, from pixels 0 .. 255 to logits, in double precision."""
        graph, fuser = self._graph, Fuser(self.image, mean, std, cuts=cuts, outline=outline)
        walker = Walker(fuser, dict(graph.constants), graph.operations)
        walker.values[graph.input] = Value.of_map(fuser.input)
        joints = _joints(graph)
        for operation in graph.operations:
            if operation.word in walker.done:
                continue
            if not any(name in walker.values for name in operation.inputs):
                walker.constants.update(folded(operation, walker.constants))
            elif operation.kind == "Shape":
                walker.constants[operation.outputs[0]] = _shape(walker, operation)
            else:
                _walk(walker, operation, joints)
        found = walker.values.get(graph.output)
        if found is None or found.settled(fuser, LOGITS).node.shape[1:] != (1, 1):
            raise InputError(
                f"its output is {'a constant' if found is None else f'a map of {found.node.shape}'}",
                where=f"{self._where}, {graph.output}",
                remedy="Export a network that gives one number for each class.",
            )
        part = graph.operations[-1].part if graph.operations else "part.0"
        return fuser.finish(found.settled(fuser, LOGITS).node, f"{part}.{LOGITS}")


def read_network(path: Path) -> OnnxNetwork:
    return OnnxNetwork(load_onnx(path), str(path))


def _walk(walker: Walker, operation: Operation, joints: set[str]) -> None:
    refuse_unknown([operation], WAYS, operation.label)
    made = WAYS[operation.kind](walker, operation)
    for name, value in zip(operation.outputs, made if isinstance(made, list) else [made], strict=False):
        if name in joints:
            value = replace(value, node=walker.fuser.joint(value.node, operation.name))
        walker.values.setdefault(name, value)


def folded(operation: Operation, constants: dict[str, Array]) -> dict[str, Array]:
    """What an operation on constants gives."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    remedy = "Export the network with constants folded."
    inputs = [name for name in dict.fromkeys(operation.inputs) if name]
    if any(name not in constants for name in inputs):
        raise operation.refusal("reads a value that nothing makes", remedy)
    try:
        values = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(constants[n].dtype), None) for n in inputs
        ]
        outputs = [helper.make_tensor_value_info(name, 0, None) for name in operation.outputs if name]
        graph = helper.make_graph([operation.proto], "folded", values, outputs)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", operation.opset)])
        made = ReferenceEvaluator(model).run(None, {name: constants[name] for name in inputs})
    except Exception as error:
        raise operation.refusal(f"cannot be folded ({type(error).__name__})", remedy) from None
    return {value.name: np.asarray(array) for value, array in zip(outputs, made, strict=True)}


def _shape(walker: Walker, operation: Operation) -> Array:
    """With a batch of one: private inference has no other."""
    dims = np.array([1, *walker.value(operation).dims], np.int64)
    first, last = int(operation.attributes.get("start", 0)), operation.attributes.get("end")
    return dims[first : None if last is None else int(last)]


def _of_maps(graph: OnnxGraph) -> list[Operation]:
    """The operations that read a feature map, directly or not, other than through its shape."""
    maps, found = {graph.input}, []
    for operation in graph.operations:
        if maps.intersection(operation.inputs) and operation.kind not in ("Shape", "Size"):
            maps.update(operation.outputs)
            found.append(operation)
    return found


def _joints(graph: OnnxGraph) -> set[str]:
    """Values that a convolution or dense layer reads; what only moves or pads them is looked through."""
    moving = ("Flatten", "Reshape", "Pad", "Identity", "Dropout", "Squeeze", "Unsqueeze", "Transpose", "Cast")
    found: set[str] = set()
    for operation in reversed(graph.operations):
        if operation.kind in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
            found.add(operation.inputs[0])
        elif operation.outputs[0] in found and operation.kind in moving:
            found.remove(operation.outputs[0])
            found.add(operation.inputs[0])
    return found
