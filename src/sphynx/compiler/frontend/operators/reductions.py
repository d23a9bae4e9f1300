"""Means, sums and maxima along axes: sums over rows and columns are public maps, over channels a convolution.

A mean that only another mean reads waits for it: x.mean(3).mean(2) is one mean over rows and columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np

from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.value import Unreduced, Value
from sphynx.compiler.frontend.operators.walker import Walker, Ways
from sphynx.compiler.fusion.affine import Node, Window
from sphynx.compiler.fusion.nonlinear import maximum
from sphynx.compiler.fusion.window_sums import Spans
from sphynx.space.tally import Shape


def reduced(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    if len(value.dims) > 3:
        return _of_many_axes(walker, op, value)
    waiting = value.unreduced or Unreduced(value, frozenset(), tuple(range(len(value.dims))), 1.0)
    axes = _axes(walker, op, value)
    if op.kind == "ReduceSum":
        waiting = replace(waiting, factor=waiting.factor * prod(value.dims[axis] for axis in axes))
    waiting = replace(waiting, axes=waiting.axes | {waiting.places[axis] for axis in axes})
    dims, kept = _left(op, value, axes)
    waiting = replace(waiting, places=tuple(waiting.places[axis] for axis in kept))
    reader = walker.only_reader(op)
    if reader is not None and reader.kind in ("ReduceMean", "ReduceSum"):
        return Value(value.node, dims, unreduced=waiting)
    return Value(_mean(walker, op, waiting), dims)


def _of_many_axes(walker: Walker, op: Operation, value: Value) -> Value:
    """A mean or sum of more axes than a map has: each line of what goes becomes a row."""
    axes = sorted(_axes(walker, op, value))
    dims, _ = _left(op, value, {*axes})
    kept = [axis for axis in range(len(value.dims)) if axis not in axes]
    length = prod(value.dims[axis] for axis in axes)
    turned = value.moved(value.numbers().transpose([*kept, *axes]).reshape(-1, length))
    factor = float(length) if op.kind == "ReduceSum" else 1.0
    return Value(_mean(walker, op, Unreduced(turned, frozenset({1}), (0,), factor)), dims)


def largest(walker: Walker, op: Operation) -> Value:
    """ReduceMax over rows or columns, as a max pool."""
    value = walker.value(op)
    axes = _axes(walker, op, value)
    dims, _ = _left(op, value, axes)
    if len(value.dims) > 3 or len(axes) > 2:
        raise op.refusal(f"is over {len(axes)} axes of {len(value.dims)}", "Take maxima over rows and columns.")
    # The axes that are left out come first, so that rows and columns are what is compared.
    kept = [axis for axis in range(len(value.dims)) if axis not in axes]
    lengths = [value.dims[axis] for axis in (*kept, *sorted(axes))]
    turned = value.moved(value.numbers().transpose([*kept, *sorted(axes)]).reshape(_three(lengths)))
    node = turned.settled(walker.fuser, op.name).node
    over = set(range(3 - len(axes), 3))
    rows, columns = (
        [tuple(range(length))] if axis in over else [(at,) for at in range(length)]
        for axis, length in enumerate(node.shape[1:], start=1)
    )
    pooled = maximum(walker.fuser, node, rows, columns, op.name)
    return Value(walker.fuser.truncated(pooled, f"{op.name}.truncated"), dims)


def _three(lengths: Sequence[int]) -> tuple[int, ...]:
    """Fewer axes than a map has, as the last ones of a map."""
    return (1,) * (3 - len(lengths)) + tuple(lengths)


def _left(op: Operation, value: Value, axes: set[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The lengths that are left, and which of the value's axes they belong to."""
    keeps = op.attributes.get("keepdims", 1)
    kept = tuple(axis for axis in range(len(value.dims)) if keeps or axis not in axes)
    if not kept:
        raise op.refusal("leaves no axis beside the batch", "Keep the axes, with keepdims = 1.")
    return tuple(1 if axis in axes else value.dims[axis] for axis in kept), kept


def _axes(walker: Walker, op: Operation, value: Value) -> set[int]:
    """Without the batch. Where none are named all are meant, unless the operation says otherwise."""
    rank = len(value.dims) + 1
    named = "axes" in op.attributes or (len(op.inputs) > 1 and op.inputs[1])
    axes = walker.integers(op, 1, "axes") if named else []
    if not axes and not op.attributes.get("noop_with_empty_axes"):
        axes = list(range(rank))
    places = {axis + rank if axis < 0 else axis for axis in axes}
    if not all(1 <= place < rank for place in places):
        raise op.refusal(f"is over axes {sorted(axes)}", "Images of a batch must be kept apart: leave axis 0 out.")
    return {place - 1 for place in places}


def _mean(walker: Walker, op: Operation, waiting: Unreduced) -> Node:
    """Take the mean; its elements lie as those of the result, whether axes are kept or not."""
    node, places = _as_map(walker, op, waiting.value)
    axes = {places[axis] for axis in waiting.axes}
    if 0 in axes:
        weights = np.full((1, node.shape.channels, 1, 1), 1 / node.shape.channels)
        node = walker.fuser.convolve(node, weights, Window(1, 1, *node.shape[1:]))
    if axes - {0}:
        rows, columns = (_spans(length, whole=axis in axes) for axis, length in enumerate(node.shape[1:], start=1))
        node = walker.fuser.average(node, rows, columns, op.name)
    if waiting.factor == 1:
        return node
    return walker.fuser.scale(node, np.full(node.shape.channels, waiting.factor), np.zeros(node.shape.channels))


def _as_map(walker: Walker, op: Operation, value: Value) -> tuple[Node, tuple[int, ...]]:
    """Lay a value out as channels, rows and columns, its node's where possible; return also which its axes are."""
    rank = len(value.dims)
    if rank > 3:
        raise op.refusal(f"reads a tensor of {rank + 1} dimensions", "Use it on maps of channels, rows and columns.")
    ways = list(combinations(range(3), rank))
    shapes = [_widen(value.dims, places) for places in ways]
    best = shapes.index(value.node.shape) if value.node.shape in shapes else 0
    found = value if value.is_map else value.moved(value.numbers().reshape(shapes[best]))
    return found.settled(walker.fuser, op.name).node, ways[best]


def _widen(dims: tuple[int, ...], places: tuple[int, ...]) -> Shape:
    lengths = dict(zip(places, dims, strict=True))
    return Shape(*(lengths.get(axis, 1) for axis in range(3)))


def _spans(length: int, *, whole: bool) -> Spans:
    return ((0, length),) if whole else tuple((at, at + 1) for at in range(length))


WAYS: Ways = {"ReduceMean": reduced, "ReduceSum": reduced, "ReduceMax": largest}
