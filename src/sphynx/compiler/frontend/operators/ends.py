"""The outputs of a graph of operators: each a tensor of the program, laid out as the network lays it out. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import prod

from sphynx.compiler.frontend.operators.finals import End
from sphynx.compiler.frontend.operators.graph import LOGITS, OperatorGraph
from sphynx.compiler.frontend.operators.value import Value, pieces
from sphynx.compiler.frontend.operators.walker import BATCH, Walker
from sphynx.compiler.fusion.affine import Node
from sphynx.errors import InputError
from sphynx.program.outputs import Output
from sphynx.space.tally import Shape

_MOST_PIECES = 8  # selections that an output may be the sum of; beyond, its elements are gathered one by one


def end_names(graph: OperatorGraph) -> list[str]:
    """Name the step of each output, in the part of the operation that makes it."""
    parts = {name: operation.part for operation in graph.operations for name in operation.outputs}
    last = graph.operations[-1].part if graph.operations else "part.0"
    if len(graph.ends) == 1:
        return [f"{last}.{LOGITS}"]
    return [f"{parts.get(end.value, last)}.{LOGITS}.{number}" for number, end in enumerate(graph.ends)]


def laid_out(walker: Walker, end: End, where: str) -> tuple[Value, Output]:
    """Give an output's value and its layout: a vector where all axes but one have one element. Refuse constants."""
    found = walker.values.get(end.value)
    if found is None:
        raise InputError(
            "its output is a constant",
            where=f"{where}, {end.name}",
            remedy="Export a network whose outputs depend on its image, or choose others with `heads`.",
        )
    if found.has_strayed:
        raise InputError("its first axis is not the batch", where=f"{where}, {end.name}", remedy=BATCH)
    source = walker.values.get(end.source, found)
    dims = (prod(found.dims),) if max(found.dims) == prod(found.dims) else found.dims
    placed = end.place(dims, source.dims)
    if placed is None:
        shown = "x".join(map(str, (1, *source.dims)))
        raise InputError(
            f"its {end.final} is along axis {end.axis} of {shown}, not over the classes or another axis of the output",
            where=f"{where}, {end.name}",
            remedy="Export the network without it, or name what it reads as the output, with `heads`.",
        )
    dims, axis = placed
    return found.moved(found.numbers().reshape(dims)), Output(end.name, "", dims, end.final, axis)


def make_output(walker: Walker, end: End, name: str, where: str) -> Output:
    """Make the tensor of an output in a step of this name."""
    value, output = laid_out(walker, end, where)
    return walker.fuser.output(_in_order(walker, value, name), name, output)


def _in_order(walker: Walker, value: Value, name: str) -> Node:
    """The node whose elements lie as the value's, in whatever channels, rows and columns."""
    if value.order is None:
        return value.node
    as_map = value.moved(value.numbers().reshape(_as_map(value.dims)))
    order = as_map.numbers()
    if len(list(islice(pieces(order, value.node.shape), _MOST_PIECES + 1))) <= _MOST_PIECES:
        return as_map.settled(walker.fuser, name).node
    fuser = walker.fuser
    source = fuser.named(value.node, f"{name}.elements")
    return fuser.tensor(fuser.gather(f"{name}.order", source, Shape(*order.shape), order.reshape(-1)))


def _as_map(dims: Sequence[int]) -> tuple[int, int, int]:
    return (dims[0], 1, 1) if len(dims) == 1 else (dims[0], prod(dims[1:-1]), dims[-1])
