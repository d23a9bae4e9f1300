"""Operators that compare: ReLU, clips, leaky ReLUs and max pools, out of ReLUs and public sums."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sphynx.compiler.frontend.operators.one_axis import also_over_one_axis
from sphynx.compiler.frontend.operators.operation import NONLINEAR, Operation
from sphynx.compiler.frontend.operators.single_precision import meant
from sphynx.compiler.frontend.operators.value import Value
from sphynx.compiler.frontend.operators.walker import Walker, Way, Ways
from sphynx.compiler.frontend.operators.windows import kernel_shape, runs, slides
from sphynx.compiler.fusion.affine import Node
from sphynx.compiler.fusion.nonlinear import Run, clip, hard_sigmoid, hard_swish, leaky_relu, maximum, pools_first
from sphynx.compiler.fusion.select import negated

Runs = tuple[list[Run], list[Run]]


def _of_elements(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    return value if value.order is None else value.settled(walker.fuser, op.name)


def _pool_first(walker: Walker, op: Operation, way: Way, value: Value) -> Value | None:
    """Monotone, it commutes with a max pool that alone reads it: the pool first, where that is cheaper; else None."""
    follower = walker.only_reader(op)
    if follower is None or follower.kind != "MaxPool" or not value.is_map or len(follower.outputs) > 1:
        return None
    value = value.settled(walker.fuser, op.name)  # windows need its rows and columns, elements alone do not
    found = _pool_runs(walker, follower, value.node)
    if not pools_first(*found, (value.node.shape.height, value.node.shape.width)):
        return None
    pooled = maximum(walker.fuser, value.node, *found, follower.name)
    walker.values[op.inputs[0]] = Value.of_map(pooled)
    made = way(walker, replace(op, outputs=()))  # of the pooled map, which no pool reads again
    walker.values[op.inputs[0]] = value
    assert isinstance(made, Value)
    walker.values[follower.outputs[0]] = made
    walker.done.add(follower.word)
    return made


def relu(walker: Walker, op: Operation) -> Value:
    value = _of_elements(walker, op)
    first = _pool_first(walker, op, relu, value)
    if first is not None:
        return first
    return replace(value, node=walker.fuser.relu(value.node, f"{op.name}.activation"), unpadded=None)


def clipped(walker: Walker, op: Operation) -> Value:
    """Clip, of ReLU6 and HardTanh as well."""
    value = _of_elements(walker, op)
    first = _pool_first(walker, op, clipped, value)
    if first is not None:
        return first
    low, high = (_bound(walker, op, number, name) for number, name in ((1, "min"), (2, "max")))
    name, node, fuser = f"{op.name}.activation", value.node, walker.fuser
    if low is not None and high is not None:
        if not low < high:
            raise op.refusal(f"has bounds {low:g} and {high:g}", "The lower one must lie below the upper one.")
        made = clip(fuser, node, low, high, name)
    elif low is not None:
        shift = np.full((node.shape.channels, 1, 1), low)
        made = fuser.shift(fuser.relu(fuser.shift(node, -shift), name), shift)
    elif high is not None:
        shift = np.full((node.shape.channels, 1, 1), high)
        rest = fuser.relu(fuser.shift(negated(fuser, node), shift), name)  # high - x where that is positive
        made = fuser.shift(negated(fuser, rest), shift)
    else:
        made = node
    return replace(value, node=made, unpadded=None)


def _bound(walker: Walker, op: Operation, number: int, attribute: str) -> float | None:
    """None where there is none, or where it is the largest number of its kind, as older exporters wrote."""
    if attribute in op.attributes:
        bound = float(op.attributes[attribute])
    elif number < len(op.inputs) and op.inputs[number]:
        bound = float(walker.numbers(op, number).reshape(-1)[0])
    else:
        return None
    return bound if abs(bound) < 1e30 else None


def clipped_line(walker: Walker, op: Operation) -> Value:
    """HardSigmoid."""
    value = _of_elements(walker, op)
    given = op.attributes.get("alpha", 0.2), op.attributes.get("beta", 0.5)
    if not np.isfinite(given).all():
        raise op.refusal("has parameters that are not finite", "Check its alpha and beta.")
    slope, offset = (float(meant(number)) for number in given)
    if slope <= 0:
        raise op.refusal(f"has a slope of {slope:g}", "It must be positive.")
    first = _pool_first(walker, op, clipped_line, value)
    if first is not None:
        return first
    made = hard_sigmoid(walker.fuser, value.node, slope, offset, f"{op.name}.activation")
    return replace(value, node=made, unpadded=None)


def swished(walker: Walker, op: Operation) -> Value:
    """HardSwish."""
    value = _of_elements(walker, op)
    node = hard_swish(walker.fuser, value.node, f"{op.name}.activation")
    return replace(value, node=node, unpadded=None)


def leaky(walker: Walker, op: Operation) -> Value:
    value = _of_elements(walker, op)
    if op.kind == "PRelu":
        found = walker.by_channel(op, value, walker.spread(op, 1, value))
        if found is None:
            raise op.refusal("has a slope for each pixel", "Use one slope for each channel.")
        value, slope = found
    else:
        slope = np.full(value.node.shape.channels, float(op.attributes.get("alpha", 0.01)))
    first = _pool_first(walker, op, leaky, value) if (slope >= 0).all() else None
    if first is not None:
        return first
    node, name = value.node, f"{op.name}.activation"
    if (slope == 0).all():
        made = walker.fuser.relu(node, name)
    else:
        made = node if (slope == 1).all() else leaky_relu(walker.fuser, node, slope, name)
    return replace(value, node=made, unpadded=None)


def max_pool(walker: Walker, op: Operation) -> Value:
    if len(op.outputs) > 1 and op.outputs[1]:
        raise op.refusal("returns indices", "Use only the maxima.")
    node = walker.map(op)
    return _finish(walker, op, maximum(walker.fuser, node, *_pool_runs(walker, op, node), op.name))


def _finish(walker: Walker, op: Operation, pooled: Node) -> Value:
    """Truncated, unless an activation will do that."""
    reader = walker.only_reader(op)
    if reader is not None and reader.kind in NONLINEAR:
        return Value.of_map(pooled)
    return Value.of_map(walker.fuser.truncated(pooled, f"{op.name}.truncated"))


def _pool_runs(walker: Walker, op: Operation, node: Node) -> Runs:
    axes = slides(op, node.shape, kernel_shape(op))
    for axis in axes:
        walker.fits(op, (axis.outputs, axis.kernel))
    rows, columns = (runs(axis, length) for axis, length in zip(axes, node.shape[1:], strict=True))
    if not all((*rows, *columns)):
        raise op.refusal("has a window that sees only padding", "Pad by less than the kernel's size.")
    return rows, columns


def global_max(walker: Walker, op: Operation) -> Value:
    node = walker.map(op)
    rows, columns = ([tuple(range(length))] for length in node.shape[1:])
    return _finish(walker, op, maximum(walker.fuser, node, rows, columns, op.name))


WAYS: Ways = {
    "Relu": relu,
    "Clip": clipped,
    "HardSigmoid": clipped_line,
    "HardSwish": swished,
    "LeakyRelu": leaky,
    "PRelu": leaky,
    "MaxPool": also_over_one_axis(max_pool),
    "GlobalMaxPool": also_over_one_axis(global_max),
}
