"""Operators on elements: sums, differences, extremes of maps; constants added, subtracted, multiplied, divided by."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.products import product
from sphynx.compiler.frontend.operators.value import Value
from sphynx.compiler.frontend.operators.walker import Walker, Ways
from sphynx.compiler.fusion.affine import Floats
from sphynx.compiler.fusion.select import negated


def add(walker: Walker, op: Operation) -> Value:
    if not (walker.has_value(op, 0) or walker.has_value(op, 1)):
        raise op.refusal("adds only constants", "Export the network with constants folded.")
    if walker.has_value(op, 0) and walker.has_value(op, 1):
        return _sum(walker, op, walker.value(op, 0), walker.value(op, 1))
    number = 1 if walker.has_value(op, 0) else 0
    value = walker.value(op, 1 - number)
    return _shift(walker, op, value, walker.spread(op, number, value))


def total(walker: Walker, op: Operation) -> Value:
    """Sum, of any number of maps."""
    found = walker.value(op, 0)
    for number in range(1, len(op.inputs)):
        found = _sum(walker, op, found, walker.value(op, number))
    return found


def subtract(walker: Walker, op: Operation) -> Value:
    if walker.has_value(op, 0) and walker.has_value(op, 1):
        return _sum(walker, op, walker.value(op, 0), _negative(walker, walker.value(op, 1)))
    if walker.has_value(op, 0):
        value = walker.value(op, 0)
        return _shift(walker, op, value, -walker.spread(op, 1, value))
    value = _negative(walker, walker.value(op, 1))
    return _shift(walker, op, value, walker.spread(op, 0, value))


def negative(walker: Walker, op: Operation) -> Value:
    return _negative(walker, walker.value(op))


def multiply(walker: Walker, op: Operation) -> Value:
    if walker.has_value(op, 0) and walker.has_value(op, 1):
        return product(walker, op)
    number = 1 if walker.has_value(op, 0) else 0
    value = walker.value(op, 1 - number)
    return _scale(walker, op, value, walker.spread(op, number, value))


def divide_by_constant(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    divisor = walker.spread(op, 1, value)
    if not divisor.all():
        raise op.refusal("divides by zero", "Check its constant.")
    return _scale(walker, op, value, 1 / divisor)


def _sum(walker: Walker, op: Operation, first: Value, second: Value) -> Value:
    alike = first.dims == second.dims and first.node.shape == second.node.shape
    if alike and first.order is None and second.order is None:
        return replace(first, node=first.node + second.node, unpadded=None)
    try:
        dims = np.broadcast_shapes(first.dims, second.dims)
    except ValueError:
        dims = ()
    if len(first.dims) != len(second.dims) or not dims:
        shown = " and ".join("x".join(map(str, value.dims)) for value in (first, second))
        raise op.refusal(f"adds maps of {shown}", "Add maps of the same shape, or a constant.")
    walker.fits(op, dims)
    both = [
        value.moved(np.broadcast_to(value.numbers(), dims)).settled(walker.fuser, f"{op.name}.{number}")
        for number, value in enumerate((first, second))
    ]
    return Value(both[0].node + both[1].node, dims)


def _negative(walker: Walker, value: Value) -> Value:
    return replace(value, node=negated(walker.fuser, value.node), unpadded=None)


def _shift(walker: Walker, op: Operation, value: Value, shift: Floats) -> Value:
    if value.order is not None:
        value = value.settled(walker.fuser, op.name)
    return replace(value, node=walker.fuser.shift(value.node, shift.reshape(value.node.shape)), unpadded=None)


def _scale(walker: Walker, op: Operation, value: Value, factor: Floats) -> Value:
    if value.order is not None or not value.is_map:
        value = value.settled(walker.fuser, op.name)
    found = walker.by_channel(op, value, factor)
    if found is None:
        raise op.refusal(
            "multiplies by a constant that differs from pixel to pixel", "Multiply by one number for each channel."
        )
    value, by_channel = found
    node = walker.fuser.scale(value.node, by_channel, np.zeros(len(by_channel)))
    return replace(value, node=node, unpadded=None)


def extreme(walker: Walker, op: Operation) -> Value:
    """Max and Min, of maps and constants: max(a, b) = b + relu(a - b), min(a, b) = b - relu(b - a)."""
    first = next((number for number in range(len(op.inputs)) if walker.has_value(op, number)), 0)
    found = walker.value(op, first)
    for number in range(len(op.inputs)):
        if number == first:
            continue
        other = walker.value(op, number) if walker.has_value(op, number) else walker.spread(op, number, found)
        if isinstance(other, Value):
            difference = _sum(walker, op, found, _negative(walker, other))
        else:
            difference = _shift(walker, op, found, -other)
        if op.kind == "Min":
            difference = _negative(walker, difference)
        difference = difference.settled(walker.fuser, f"{op.name}.{number}.difference")
        positive = replace(difference, node=walker.fuser.relu(difference.node, f"{op.name}.{number}.activation"))
        if op.kind == "Min":
            positive = _negative(walker, positive)
        found = _sum(walker, op, other, positive) if isinstance(other, Value) else _shift(walker, op, positive, other)
    return found


WAYS: Ways = {
    "Max": extreme,
    "Min": extreme,
    "Add": add,
    "Sum": total,
    "Sub": subtract,
    "Neg": negative,
    "Mul": multiply,
}
