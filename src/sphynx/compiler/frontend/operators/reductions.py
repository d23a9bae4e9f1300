"""Means and sums along axes: over rows and columns public maps, over channels a convolution.

A mean that only another mean reads waits for it: x.mean(3).mean(2) is one mean over rows and columns.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from math import prod

import numpy as np

from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.value import Unreduced, Value
from sphynx.compiler.frontend.operators.walker import Walker, Ways
from sphynx.compiler.fusion.affine import Node, Window
from sphynx.compiler.fusion.window_sums import Spans
from sphynx.space.tally import Shape


def reduced(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    waiting = value.unreduced or Unreduced(value, frozenset(), tuple(range(len(value.dims))), 1.0)
    axes = _axes(walker, op, value)
    if op.kind == "ReduceSum":
        waiting = replace(waiting, factor=waiting.factor * prod(value.dims[axis] for axis in axes))
    waiting = replace(waiting, axes=waiting.axes | {waiting.places[axis] for axis in axes})
    dims = tuple(1 if axis in axes else length for axis, length in enumerate(value.dims))
    if not op.attributes.get("keepdims", 1):
        kept = [axis for axis in range(len(dims)) if axis not in axes]
        dims = tuple(dims[axis] for axis in kept)
        waiting = replace(waiting, places=tuple(waiting.places[axis] for axis in kept))
    if not dims:
        raise op.refusal("leaves no axis beside the batch", "Keep the axes, with keepdims = 1.")
    reader = walker.only_reader(op)
    if reader is not None and reader.kind in WAYS:
        return Value(value.node, dims, unreduced=waiting)
    return Value(_mean(walker, op, waiting), dims)


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


WAYS: Ways = {"ReduceMean": reduced, "ReduceSum": reduced}
