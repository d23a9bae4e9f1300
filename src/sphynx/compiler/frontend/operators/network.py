"""Walks a graph of operators into a fused graph, as torch_network.py walks a network of ours. No torch.

What reads constants alone is folded, and a map's shape is a constant: so shape arithmetic disappears. The operators are
in layers.py, reductions.py, arithmetic.py, products.py, quotients.py, moves.py, resize.py, nonlinear.py and smooth.py;
all others are refused, by kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import replace

import numpy as np

from sphynx.compiler.frontend.operators import (
    arithmetic,
    layers,
    moves,
    nonlinear,
    products,
    quotients,
    reductions,
    resize,
    smooth,
)
from sphynx.compiler.frontend.operators.ends import end_names, laid_out, make_output
from sphynx.compiler.frontend.operators.graph import OperatorGraph
from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.refusals import OUR_WORDS, list_unknown, refuse_unknown
from sphynx.compiler.frontend.operators.stray import with_strayed
from sphynx.compiler.frontend.operators.value import Value
from sphynx.compiler.frontend.operators.walker import Walker, Ways
from sphynx.compiler.fusion.fuse import Fused, Fuser
from sphynx.errors import InputError
from sphynx.program.convolve import Array

EXACT: Ways = {
    **layers.WAYS,
    **reductions.WAYS,
    **nonlinear.WAYS,
    **arithmetic.WAYS,
    **products.WAYS,
    "Div": quotients.divide,
    **moves.WAYS,
    **resize.WAYS,
}
WAYS: Ways = {**EXACT, **smooth.WAYS, **quotients.WAYS}
# For users, in ONNX's words.
COMPILED = tuple(sorted({*EXACT} - OUR_WORDS))
APPROXIMATED = tuple(sorted({**smooth.WAYS, **quotients.WAYS}))


class OperatorNetwork:
    def __init__(self, graph: OperatorGraph, *, approximate: bool = False) -> None:
        """Smooth activations are refused unless they may be approximated."""
        self.name, self.image, self.graph = graph.name, graph.image, graph
        self._approximate = approximate
        refuse_unknown(_of_maps(graph), WAYS if approximate else EXACT, graph.where)

    def trace(
        self, mean: tuple[float, ...], std: tuple[float, ...], *, cuts: Container[str] = (), outline: bool = False
    ) -> Fused:
        """Trace what the network computes, from pixels 0 .. 255 to its outputs, in double precision."""
        graph, fuser = self.graph, Fuser(self.image, mean, std, cuts=cuts, outline=outline)
        ends = {end.value for end in graph.ends}
        walker = Walker(fuser, dict(graph.constants), graph.operations, ends, self._approximate)
        whole = Value.of_map(fuser.input)
        walker.values[graph.input] = whole.moved(graph.view(whole.numbers()))
        joints = _joints(graph)
        for operation in graph.operations:
            _take(walker, operation, joints)
        named = zip(graph.ends, end_names(graph), strict=True)
        return fuser.finish_all([make_output(walker, end, name, graph.where) for end, name in named])


def find_faults(graph: OperatorGraph, *, approximate: bool = False) -> tuple[list[InputError], tuple[str, ...]]:
    """Find all that stands in the way, not only the first of it: every operator that is not known, then what the walk
    refuses, as far as it comes without the values that a refused operator would have made. Also name the last values
    that can be had: outputs, and what refused operators read."""
    found = list_unknown(_of_maps(graph), WAYS if approximate else EXACT, graph.where)
    channels = graph.image.channels
    fuser = Fuser(graph.image, (0.0,) * channels, (1.0,) * channels, outline=True)
    ends = {end.value for end in graph.ends}
    walker = Walker(fuser, dict(graph.constants), graph.operations, ends, approximate)
    whole = Value.of_map(fuser.input)
    walker.values[graph.input] = whole.moved(graph.view(whole.numbers()))
    lost: set[str] = set()
    heads: list[str] = []
    for operation in graph.operations:
        if lost.isdisjoint(operation.inputs) and (operation.kind in WAYS or not _reads_map(walker, operation)):
            try:
                _take(walker, operation, set())
                continue
            except InputError as error:
                found.append(error)
        elif lost.isdisjoint(operation.inputs) and operation.kind in ("Shape", "Size"):
            _take(walker, operation, set())
            continue
        heads += [name for name in operation.inputs if name in walker.values and name != graph.input]
        lost.update(operation.outputs)
    for end in graph.ends:
        if end.value in lost:
            continue
        try:
            laid_out(walker, end, graph.where)
            heads.append(end.name)
        except InputError as error:
            found.append(error)
    return found, tuple(dict.fromkeys(heads))


def _reads_map(walker: Walker, operation: Operation) -> bool:
    return any(name in walker.values for name in operation.inputs)


def _take(walker: Walker, operation: Operation, joints: set[str]) -> None:
    """Compute what reads constants alone; walk the rest."""
    if operation.word in walker.done:
        return
    if not _reads_map(walker, operation):
        walker.constants.update(_fold(operation, walker))
    elif operation.kind == "Shape":
        walker.constants[operation.outputs[0]] = _shape(walker, operation)
    else:
        _walk(walker, operation, joints)


def _walk(walker: Walker, operation: Operation, joints: set[str]) -> None:
    refuse_unknown([operation], WAYS, operation.label)
    made = with_strayed(WAYS[operation.kind])(walker, operation)
    for name, value in zip(operation.outputs, made if isinstance(made, list) else [made], strict=False):
        if name in joints:
            value = replace(value, node=walker.fuser.joint(value.node, operation.name))
        walker.values.setdefault(name, value)


def _fold(operation: Operation, walker: Walker) -> dict[str, Array]:
    if operation.fold is None:
        raise operation.refusal("reads a value that no node computes", "Export the network again.")
    return operation.fold(operation, walker.constants, walker.allowance)


def _shape(walker: Walker, operation: Operation) -> Array:
    """The shape with a batch of one: private inference has no other."""
    dims = np.array(walker.value(operation).whole().shape, np.int64)
    first, last = int(operation.attributes.get("start", 0)), operation.attributes.get("end")
    return dims[first : None if last is None else int(last)]


def _of_maps(graph: OperatorGraph) -> list[Operation]:
    """The operations that read a feature map, directly or not, other than through its shape."""
    maps, found = {graph.input}, []
    for operation in graph.operations:
        if maps.intersection(operation.inputs) and operation.kind not in ("Shape", "Size"):
            maps.update(operation.outputs)
            found.append(operation)
    return found


def _joints(graph: OperatorGraph) -> set[str]:
    """Values that a convolution or dense layer reads, that a join places beside others, or that a sum or a batch norm
    reads beside another operation: fused, each would compute them again, as every layer of a DenseNet all before it.
    What only moves, pads, splits or joins them is looked through: the parts of a split are one map, with one joint."""
    moving = ("Flatten", "Reshape", "Pad", "Identity", "Dropout", "Squeeze", "Unsqueeze", "Transpose", "Cast", "Split")
    readers = Counter(name for operation in graph.operations for name in {*operation.inputs})
    found: set[str] = set()
    for operation in reversed(graph.operations):
        if operation.kind in ("Conv", "ConvTranspose", "Gemm", "MatMul"):
            found.add(operation.inputs[0])
        elif operation.kind == "Concat":
            found.discard(operation.outputs[0])
            found.update(operation.inputs)
        elif found & {*operation.outputs} and (operation.kind in moving or operation.attributes.get("keeps_all")):
            found.difference_update(operation.outputs)
            found.add(operation.inputs[0])
        elif operation.kind in ("BatchNormalization", "Add", "Sub", "Sum"):
            found.update(name for name in operation.inputs if readers[name] > 1)
    return found
