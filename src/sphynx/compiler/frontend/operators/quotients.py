"""Quotients of feature maps, and what is made of them: softmax and norms inside a network.

A quotient is a product with a reciprocal, which is approximated as any smooth function of each element is; behind a
root both are one function. A softmax takes the largest element away first: then each exponential is at most 1, and
their sum lies between 1 and their number, where a reciprocal is easily approximated.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sphynx.compiler.frontend.operators.arithmetic import add, divide_by_constant, multiply, subtract
from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.products import power, product
from sphynx.compiler.frontend.operators.reductions import largest, reduced
from sphynx.compiler.frontend.operators.smooth import curve
from sphynx.compiler.frontend.operators.value import Value
from sphynx.compiler.frontend.operators.walker import Walker, Way, Ways

_EPSILON = 1e-5  # ONNX's


def divide(walker: Walker, op: Operation) -> Value:
    """Div, also by a map: a product with its reciprocal, or with the inverse root that stands for a root already."""
    if not walker.has_value(op, 1):
        return divide_by_constant(walker, op)
    if not walker.approximates:
        raise op.refusal(
            "by a feature map cannot be compiled exactly", "Have it approximated, with `approximate=True`."
        )
    inverse = walker.value(op, 1)
    if op.inputs[1] not in walker.inverted:
        inverse = curve(walker, replace(op, word=f"{op.word}_reciprocal"), inverse, "reciprocal")
    if not walker.has_value(op, 0):
        return _Part(walker, op).made(multiply, "quotient", inverse, op.inputs[0])
    return _Part(walker, op).made(product, "quotient", walker.value(op, 0), inverse)


def root(walker: Walker, op: Operation) -> Value:
    """Sqrt: the inverse root where only a quotient or a reciprocal reads it."""
    reader = walker.only_reader(op)
    of_quotient = reader is not None and reader.kind == "Div" and reader.inputs[0] != op.outputs[0]
    is_divisor = of_quotient or (reader is not None and reader.kind == "Reciprocal")
    if is_divisor:
        walker.inverted.add(op.outputs[0])
    return curve(walker, op, walker.value(op), "inverse_root" if is_divisor else "sqrt")


def reciprocal(walker: Walker, op: Operation) -> Value:
    if op.inputs[0] in walker.inverted:
        return walker.value(op)
    return curve(walker, op, walker.value(op), "reciprocal")


def softmax(walker: Walker, op: Operation) -> Value:
    value, part = walker.value(op), _Part(walker, op)
    axis = int(op.attributes.get("axis", 1 if op.opset < 13 else -1))
    place = (axis + len(value.dims) + 1 if axis < 0 else axis) - 1
    if not 0 <= place < len(value.dims):
        raise op.refusal(f"is along axis {axis}", "Take it along an axis of the map.")
    dims, order = value.dims, value.numbers()
    # Before opset 13 a softmax was over its axis and all that follow.
    lines = order.reshape(*dims[:place], -1) if op.opset < 13 else np.moveaxis(order, place, -1)
    turned = value.moved(lines.reshape(-1, lines.shape[-1])).settled(walker.fuser, f"{op.name}.lines")
    turned = Value(walker.fuser.truncated(turned.node, f"{op.name}.truncated"), turned.dims)
    along: dict[str, Any] = {"axes": [2], "keepdims": 1}
    most = part.made(largest, "largest", turned, **along)
    powers = curve(walker, part.operation("exponential"), part.made(subtract, "differences", turned, most), "exp")
    total = part.made(reduced, "total", powers, kind="ReduceSum", **along)
    inverse = curve(walker, part.operation("inverse"), total, "reciprocal")
    shares = part.made(product, "shares", powers, inverse)
    numbers = shares.numbers().reshape(lines.shape)
    return shares.moved(numbers.reshape(dims) if op.opset < 13 else np.moveaxis(numbers, -1, place))


def layer_norm(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    axis, rank = int(op.attributes.get("axis", -1)), len(value.dims) + 1
    found = _normed(walker, op, value, list(range(axis + rank if axis < 0 else axis, rank)))
    part = _Part(walker, op)
    if len(op.inputs) > 1 and op.inputs[1]:
        found = part.made(multiply, "scaled", found, op.inputs[1])
    return part.made(add, "shifted", found, op.inputs[2]) if len(op.inputs) > 2 and op.inputs[2] else found


def group_norm(walker: Walker, op: Operation) -> Value:
    """GroupNormalization; InstanceNormalization has as many groups as channels."""
    value, part = walker.value(op), _Part(walker, op)
    channels = value.dims[0]
    groups = int(op.attributes.get("num_groups", channels))
    if len(value.dims) < 2 or groups < 1 or channels % groups:
        raise op.refusal(f"has {groups} groups", "They must divide the channels of a map.")
    lines = value.moved(value.numbers().reshape(groups, -1)).settled(walker.fuser, f"{op.name}.lines")
    found = _normed(walker, op, lines, [2])
    found = found.moved(found.numbers().reshape(value.dims)).settled(walker.fuser, f"{op.name}.map")
    for number, (word, way) in enumerate((("scaled", multiply), ("shifted", add)), start=1):
        if number < len(op.inputs) and op.inputs[number]:
            given = walker.constant(op, number, (None,))  # one for each group in older files
            each = np.repeat(given, channels // len(given)).reshape(1, channels, *(1,) * (len(value.dims) - 1))
            found = part.made(way, word, found, part.constant(f"{word}.by", each))
    return found


def _normed(walker: Walker, op: Operation, value: Value, axes: list[int]) -> Value:
    """Mean 0 and variance 1 along these axes."""
    part = _Part(walker, op)
    along: dict[str, Any] = {"axes": axes, "keepdims": 1, "kind": "ReduceMean"}
    centred = part.made(subtract, "centred", value, part.made(reduced, "mean", value, **along))
    centred = Value(walker.fuser.truncated(centred.node, f"{op.name}.truncated"), centred.dims, centred.order)
    two = part.constant("two", np.array(2.0))
    variance = part.made(reduced, "variance", part.made(power, "squares", centred, two), **along)
    epsilon = part.constant("epsilon", np.array(float(op.attributes.get("epsilon", _EPSILON))))
    inverse = curve(walker, part.operation("inverse"), part.made(add, "above", variance, epsilon), "inverse_root")
    return part.made(product, "normed", centred, inverse)


class _Part:
    """Other operators as parts of an operation: their values under names of its own."""

    def __init__(self, walker: Walker, op: Operation) -> None:
        self.walker, self.op = walker, op

    def constant(self, word: str, number: np.ndarray[Any, Any]) -> str:
        self.walker.constants[self._name(word)] = number
        return self._name(word)

    def operation(self, word: str, inputs: tuple[str, ...] = (), **attributes: Any) -> Operation:
        kind = attributes.pop("kind", self.op.kind)
        return replace(
            self.op,
            kind=kind,
            word=f"{self.op.word}_{word}",
            inputs=inputs,
            outputs=(self._name(word),),
            attributes=attributes,
        )

    def made(self, way: Way, word: str, *inputs: Value | str, **attributes: Any) -> Value:
        """Return what another operator makes of values and constants."""
        names = []
        for number, given in enumerate(inputs):
            if isinstance(given, str):
                names.append(given)
                continue
            names.append(self._name(f"{word}.{number}"))
            self.walker.values[names[-1]] = given
        found = way(self.walker, self.operation(word, tuple(names), **attributes))
        assert isinstance(found, Value)
        return found

    def _name(self, word: str) -> str:
        return f"{self.op.name}.{word}"


WAYS: Ways = {
    "Sqrt": root,
    "Reciprocal": reciprocal,
    "Softmax": softmax,
    "LayerNormalization": layer_norm,
    "GroupNormalization": group_norm,
    "InstanceNormalization": group_norm,
}
