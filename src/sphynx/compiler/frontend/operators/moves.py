"""Operators that only move elements: they renumber a value's elements (value.py), and cost nothing."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np

from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.sizes import MOST_AXES
from sphynx.compiler.frontend.operators.value import Pads, Value
from sphynx.compiler.frontend.operators.walker import BATCH, Walker, Ways
from sphynx.compiler.fusion.select import constant, joined
from sphynx.program.ir import NOTHING


def concat(walker: Walker, op: Operation) -> Value:
    values = [_map_or_constant(walker, op, number) for number in range(len(op.inputs))]
    axis, rank = int(op.attributes["axis"]), len(values[0].dims)
    axis = (axis + rank + 1 if axis < 0 else axis) - 1
    others = {(*v.dims[:axis], *v.dims[axis + 1 :]) for v in values}
    if not 0 <= axis < rank or len(others) != 1 or any(len(v.dims) != rank for v in values):
        raise op.refusal("joins maps that do not fit together", "Join maps of one size along one axis.")
    dims = _join_dims(values, axis)
    walker.fits(op, dims)
    if rank > 3:
        raise op.refusal(f"joins tensors of {rank + 1} dimensions", "Join maps or vectors.")
    if rank == 2:  # as maps of one row
        values = [value.moved(value.numbers()[:, None]) for value in values]
    settled = [value.settled(walker.fuser, f"{op.name}.{number}") for number, value in enumerate(values)]
    node = joined(walker.fuser, [value.node for value in settled], 2 * axis if rank == 2 else axis, op.name)
    return Value(node, dims)


def _map_or_constant(walker: Walker, op: Operation, number: int) -> Value:
    """A constant, such as the coordinates that a CoordConv reads beside a map, is a map that depends on nothing."""
    if not walker.has_constant(op, number):
        return walker.value(op, number)
    array = walker.numbers(op, number)
    if array.ndim < 2 or len(array) != 1 or not array.size:
        raise op.refusal("joins a constant that is not one for all images", "Give it a first axis of length 1.")
    dims = array.shape[1:]
    return Value(constant(walker.fuser, array.reshape(dims if len(dims) == 3 else (array.size, 1, 1))), dims)


def _join_dims(values: list[Value], axis: int) -> tuple[int, ...]:
    dims = list(values[0].dims)
    dims[axis] = sum(value.dims[axis] for value in values)
    return tuple(dims)


def flatten(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    if int(op.attributes.get("axis", 1)) != 1:
        raise op.refusal("does not keep images apart", "Flatten with axis = 1.")
    return value.moved(value.numbers().reshape(-1))


def reshape(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    target = walker.integers(op, 1)
    whole, size = (1, *value.dims), prod(value.dims)
    dims = list(target)
    if not op.attributes.get("allowzero"):
        dims = [whole[at] if n == 0 and at < len(whole) else n for at, n in enumerate(dims)]
    known = prod(n for n in dims if n != -1)
    if dims.count(-1) == 1 and known > 0:
        dims[dims.index(-1)] = size // known
    if not 2 <= len(dims) <= MOST_AXES or min(dims) < 1 or prod(dims) != size or dims[0] != 1:
        raise op.refusal(f"makes {target} out of a map of {'x'.join(map(str, value.dims))}", BATCH)
    return value.moved(value.numbers().reshape(dims[1:]))


def transpose(walker: Walker, op: Operation) -> Value:
    """The batch may be put behind a longer axis, as attention does with [n, patches, 3, heads, channels]."""
    value = walker.value(op)
    whole = value.whole()
    order = [int(n) for n in op.attributes.get("perm", range(whole.ndim - 1, -1, -1))]
    if sorted(order) != list(range(whole.ndim)):
        raise op.refusal(f"reorders axes by {order}", "Name each axis once.")
    if whole.shape[order[0]] == 1 and order[0] != 0 and not value.has_strayed:
        raise op.refusal(f"reorders axes by {order}", BATCH)
    return value.moved_whole(whole.transpose(order))


def _axis(op: Operation, value: Value, axis: int) -> int:
    """Among all axes, the batch's first."""
    rank = len(value.dims) + (not value.has_strayed)
    found = axis + rank if axis < 0 else axis
    if not (0 if value.has_strayed else 1) <= found < rank:
        raise op.refusal(f"works along axis {axis}", BATCH)
    return found


def slices(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    starts, ends = walker.integers(op, 1, "starts"), walker.integers(op, 2, "ends")
    has_axes = "axes" in op.attributes or (len(op.inputs) > 3 and op.inputs[3])
    axes = walker.integers(op, 3, "axes") if has_axes else list(range(len(starts)))
    steps = walker.integers(op, 4) if len(op.inputs) > 4 and op.inputs[4] else [1] * len(starts)
    if not len(starts) == len(ends) == len(axes) == len(steps) or 0 in steps:
        raise op.refusal("has starts, ends, axes and steps that do not fit each other", "Check its inputs.")
    order = value.whole()
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if axis in (0, -order.ndim) and not value.has_strayed and start == 0 and end > 0 and step == 1:
            continue
        place = _axis(op, value, axis)
        # ONNX clamps an end of any size; Python would count a negative one from the back.
        last = None if step < 0 and end < -order.shape[place] else end
        order = order[(slice(None),) * place + (slice(start, last, step),)]
    walker.fits(op, order.shape if value.has_strayed else order.shape[1:])
    return value.moved_whole(order, keeps_axes=True)


def split(walker: Walker, op: Operation) -> list[Value]:
    value = walker.value(op)
    axis = _axis(op, value, int(op.attributes.get("axis", 0)))
    length, parts = value.whole().shape[axis], len(op.outputs)
    if "split" in op.attributes or (len(op.inputs) > 1 and op.inputs[1]):
        sizes = walker.integers(op, 1, "split")
    else:
        each = -(-length // parts)
        sizes = [each] * (parts - 1) + [length - each * (parts - 1)]
    if len(sizes) != parts or min(sizes) < 1 or sum(sizes) != length:
        raise op.refusal(f"splits {length} into parts of {sizes}", "Check its sizes.")
    cuts = np.cumsum(sizes)[:-1].tolist()
    return [value.moved_whole(order, keeps_axes=True) for order in np.split(value.whole(), cuts, axis)]


def gather(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    axis = _axis(op, value, int(op.attributes.get("axis", 0)))
    whole = value.whole()
    index, length = walker.numbers(op, 1).astype(np.int64), whole.shape[axis]
    if index.ndim > 1 or (index < -length).any() or (index >= length).any():
        raise op.refusal("takes positions that do not exist", "Use one list of positions along one axis.")
    walker.fits(op, (*whole.shape[:axis], *index.shape, *whole.shape[axis + 1 :], 1))
    return value.moved_whole(np.take(whole, index % length, axis), keeps_axes=index.ndim == 1)


def squeeze(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    whole = value.whole()
    if "axes" in op.attributes or (len(op.inputs) > 1 and op.inputs[1]):
        axes = [_axis(op, value, axis) for axis in walker.integers(op, 1, "axes")]
    else:
        axes = [axis for axis, length in enumerate(whole.shape) if length == 1 and (axis or value.has_strayed)]
    if any(whole.shape[axis] != 1 for axis in axes):
        raise op.refusal("removes an axis that is longer than 1", "Check its axes.")
    dims = [length for axis, length in enumerate(whole.shape) if axis not in axes]
    return value.moved_whole(whole.reshape(dims if len(dims) > 1 else [1, -1]))


def unsqueeze(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    axes = walker.integers(op, 1, "axes")
    rank = len(value.dims) + 1 + len(axes)
    places = sorted(axis + rank if axis < 0 else axis for axis in axes)
    if len(set(places)) != len(places) or not all(1 <= place < rank for place in places) or rank > MOST_AXES:
        raise op.refusal(f"adds axes {axes}", BATCH)
    dims = list(value.dims)
    for place in places:
        dims.insert(place - 1, 1)
    return value.moved(value.numbers().reshape(dims))


def pad(walker: Walker, op: Operation) -> Value:
    """Zeros, or the map's own pixels again: reflected, or those of the edge."""
    value = walker.value(op)
    mode = bytes(op.attributes.get("mode", b"constant")).decode(errors="replace")
    if mode not in ("constant", "reflect", "edge", "wrap"):
        raise op.refusal(f"has mode {mode}", "Use constant zeros, reflect or edge.")
    # Before opset 11 amounts and value were attributes.
    filled = len(op.inputs) > 2 and op.inputs[2] and walker.numbers(op, 2).any()
    if mode == "constant" and (filled or op.attributes.get("value")):
        raise op.refusal("pads with a number other than 0", "Pad with zeros.")
    amounts = _amounts(walker, op, value)
    order = value.numbers()
    cropped = tuple(slice(max(0, -a), n - max(0, -b)) for (a, b), n in zip(amounts, order.shape, strict=True))
    order = order[cropped]
    added = [(max(0, a), max(0, b)) for a, b in amounts]
    limits = [n - 1 if mode == "reflect" else n for n in order.shape]
    is_short = any(max(pair) > limit for pair, limit in zip(added, limits, strict=True))
    if not order.size or (mode in ("reflect", "wrap") and is_short):
        raise op.refusal(f"pads by {amounts}", "Check its pads against the map's size.")
    walker.fits(op, [n + a + b for n, (a, b) in zip(order.shape, added, strict=True)])
    options = {"constant_values": NOTHING} if mode == "constant" else {}
    padded = value.moved(np.pad(order, added, mode, **options))  # type: ignore[call-overload]  # the mode is a name here
    if mode == "constant" and value.is_map and amounts[0] == (0, 0) and min(min(pair) for pair in amounts) >= 0:
        pads: Pads = (amounts[1], amounts[2])
        return replace(padded, unpadded=(value.settled(walker.fuser, op.name).node, pads))
    return padded


def _amounts(walker: Walker, op: Operation, value: Value) -> list[tuple[int, int]]:
    amounts, rank = walker.integers(op, 1, "pads"), len(value.dims) + 1
    axes = list(range(rank))
    if len(op.inputs) > 3 and op.inputs[3]:
        axes = [axis + rank if axis < 0 else axis for axis in walker.integers(op, 3)]
    by_axis = dict.fromkeys(range(rank), (0, 0))
    if len(amounts) == 2 * len(axes):
        by_axis.update(zip(axes, zip(amounts[: len(axes)], amounts[len(axes) :], strict=True), strict=True))
    if len(amounts) != 2 * len(axes) or len(by_axis) != rank or by_axis[0] != (0, 0):
        raise op.refusal(f"pads by {amounts}", "Pad rows and columns.")
    return [by_axis[axis] for axis in range(1, rank)]


def depth_to_space(walker: Walker, op: Operation) -> Value:
    value, block = walker.value(op), int(op.attributes["blocksize"])
    if not value.is_map or block < 1 or value.dims[0] % (block * block):
        raise op.refusal(f"has blocks of {block}", "Its square must divide the channels of a map.")
    channels, height, width = value.dims
    inner = channels // block**2
    if op.attributes.get("mode", b"DCR") == b"CRD":
        order = value.numbers().reshape(inner, block, block, height, width).transpose(0, 3, 1, 4, 2)
    else:
        order = value.numbers().reshape(block, block, inner, height, width).transpose(2, 3, 0, 4, 1)
    return value.moved(order.reshape(inner, height * block, width * block))


def space_to_depth(walker: Walker, op: Operation) -> Value:
    value, block = walker.value(op), int(op.attributes["blocksize"])
    if not value.is_map or block < 1 or value.dims[1] % block or value.dims[2] % block:
        raise op.refusal(f"has blocks of {block}", "They must divide the rows and columns of a map.")
    channels, height, width = value.dims
    order = value.numbers().reshape(channels, height // block, block, width // block, block).transpose(2, 4, 0, 1, 3)
    return value.moved(order.reshape(channels * block * block, height // block, width // block))


def rearrange(walker: Walker, op: Operation) -> list[Value]:
    """Any move, as the reader's own library does it: `moved` gives the numbers of elements for each output."""
    value = walker.value(op)
    found = []
    whole = value.whole()
    for order in op.attributes["moved"](whole):
        is_behind = len(order) > 1 and (1 in order.shape[1:] or value.has_strayed)  # the batch, maybe within an axis
        if order.ndim < 2 or not (len(order) == 1 or is_behind):
            made, of = ("x".join(map(str, shape)) for shape in (order.shape, whole.shape))
            raise op.refusal(f"makes {made} out of {of}", BATCH)
        walker.fits(op, order.shape)
        found.append(value.moved_whole(order))
    return found


def expand(walker: Walker, op: Operation) -> Value:
    value, target = walker.value(op), walker.integers(op, 1)
    whole = (1, *value.dims)
    try:
        if len(target) > len(whole):
            raise ValueError
        dims = np.broadcast_shapes(whole, tuple(target))
    except ValueError:
        raise op.refusal(f"makes {target} out of a map of {'x'.join(map(str, value.dims))}", BATCH) from None
    return _repeat(walker, op, value, [n if own == 1 else 1 for n, own in zip(dims, whole, strict=True)])


def tile(walker: Walker, op: Operation) -> Value:
    return _repeat(walker, op, walker.value(op), walker.integers(op, 1))


def _repeat(walker: Walker, op: Operation, value: Value, times: list[int]) -> Value:
    """Along each axis, the batch's first."""
    if len(times) != len(value.dims) + 1 or times[0] != 1 or min(times) < 1:
        raise op.refusal(f"repeats {'x'.join(map(str, (1, *value.dims)))} by {times}", BATCH)
    walker.fits(op, [n * length for n, length in zip(times[1:], value.dims, strict=True)])
    return value.moved(np.tile(value.numbers(), times[1:]))


def nothing(walker: Walker, op: Operation) -> Value:
    return walker.value(op)


def dropout(walker: Walker, op: Operation) -> Value:
    if len(op.inputs) > 2 and op.inputs[2] and walker.numbers(op, 2).any():
        raise op.refusal("drops elements at random", "Export the network for inference (model.eval()).")
    return walker.value(op)


WAYS: Ways = {
    "Concat": concat,
    "Flatten": flatten,
    "Reshape": reshape,
    "Transpose": transpose,
    "Slice": slices,
    "Split": split,
    "Gather": gather,
    "Squeeze": squeeze,
    "Unsqueeze": unsqueeze,
    "Expand": expand,
    "Tile": tile,
    "Pad": pad,
    "DepthToSpace": depth_to_space,
    "SpaceToDepth": space_to_depth,
    "Rearrange": rearrange,
    "Identity": nothing,
    "Cast": nothing,
    "Dropout": dropout,
}
