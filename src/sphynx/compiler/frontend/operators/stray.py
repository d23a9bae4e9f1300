"""Operators on values whose batch lies behind another axis, as torch's attention keeps it: [patches, n, channels].

They are walked with one more axis in front, so that every axis of the graph's is one of the image's own, and of the
length that it has for one image. What comes out is a batch again as soon as its first axis has one element.

A sum, a maximum or a product of matrices over an axis of one element could be one over the batch: these are refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sphynx.compiler.frontend.operators.operation import CURVED, Operation
from sphynx.compiler.frontend.operators.value import Value
from sphynx.compiler.frontend.operators.walker import BATCH, Walker, Way

_ALONG = ("Softmax", "LayerNormalization", "ReduceMean", "ReduceSum")
_ALIKE = ("Add", "Sub", "Sum", "Neg", "Mul", "Div", "Relu", "Clip", "Sqrt", "Reciprocal", *CURVED)
TAKEN = frozenset({*_ALONG, *_ALIKE, "Gemm", "MatMul", "Reshape", "Unsqueeze"})


def with_strayed(way: Way) -> Way:
    """The same operator for values whose batch may have strayed."""

    def walk(walker: Walker, op: Operation) -> Value | list[Value]:
        given = {name: walker.values[name] for name in op.inputs if name in walker.values}
        if op.kind not in TAKEN or not any(value.has_strayed for value in given.values()):
            return way(walker, op)
        wholes = {name: replace(value.moved(value.whole()), has_strayed=False) for name, value in given.items()}
        moved = _behind_one_more(walker, op)
        _refuse_one_element(op, moved, [wholes[name] for name in op.inputs if name in wholes])
        walker.values.update(wholes)
        try:
            made = way(walker, moved)
        finally:
            walker.values.update(given)
        assert isinstance(made, Value)
        return made.moved_whole(made.numbers())

    return walk


def _behind_one_more(walker: Walker, op: Operation) -> Operation:
    """With its axes counted as they are behind one more axis; those that are counted from the end stay."""
    attributes: dict[str, Any] = dict(op.attributes)
    inputs = list(op.inputs)
    if op.kind in ("Softmax", "LayerNormalization"):
        axis = int(attributes.get("axis", 1 if op.kind == "Softmax" and op.opset < 13 else -1))
        attributes["axis"] = axis + (axis >= 0)
    has_axes = "axes" in attributes or (len(inputs) > 1 and inputs[1])
    if op.kind in ("ReduceMean", "ReduceSum", "Unsqueeze") and has_axes:
        attributes["axes"] = [axis + (axis >= 0) for axis in walker.integers(op, 1, "axes")]
        inputs = inputs[:1]
    if op.kind == "Reshape":
        inputs[1] = f"{op.name}.behind"
        walker.constants[inputs[1]] = np.array([1, *walker.integers(op, 1)])
    outputs = () if op.kind.startswith("Reduce") else op.outputs  # a mean waits for no other one, whose axes differ
    return replace(op, inputs=tuple(inputs), outputs=outputs, attributes=attributes)


def _refuse_one_element(op: Operation, moved: Operation, values: list[Value]) -> None:
    lengths = values[0].dims
    if op.kind in _ALONG:
        over = [lengths[place - 1] for place in _places_along(moved, len(lengths) + 1) if 1 <= place <= len(lengths)]
    else:
        over = [lengths[-1]] if op.kind == "MatMul" and len(values) > 1 else []
    if 1 in over:
        raise op.refusal(f"is over an axis of one element of {'x'.join(map(str, lengths))}", BATCH)


def _places_along(op: Operation, rank: int) -> list[int]:
    """All axes that it takes together, counted from the front."""
    if op.kind in ("ReduceMean", "ReduceSum"):
        every = [] if op.attributes.get("noop_with_empty_axes") else list(range(rank))
        return [axis + rank * (axis < 0) for axis in op.attributes.get("axes", ())] or every
    axis = op.attributes["axis"]
    first = axis + rank * (axis < 0)
    takes_all_that_follow = op.kind == "LayerNormalization" or op.opset < 13
    return list(range(first, rank)) if takes_all_that_follow else [first]
