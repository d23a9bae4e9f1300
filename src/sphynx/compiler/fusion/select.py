"""Slices, joins, permutations, paddings and repetitions: public where the node is, folded where it convolves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sphynx.compiler.fusion.affine import Floats, Node, Window
from sphynx.compiler.fusion.fuse import Fuser
from sphynx.compiler.fusion.selection import Index, sliding
from sphynx.program.ir import NOTHING
from sphynx.space.tally import Shape


def select(
    fuser: Fuser,
    node: Node,
    name: str,
    channels: Index | None = None,
    rows: Index | None = None,
    columns: Index | None = None,
) -> Node:
    """Position i of an axis of the result is position index[i] of the node, or zero where that is NOTHING."""
    shape = Shape(
        *(
            length if index is None else len(index)
            for length, index in zip(node.shape, (channels, rows, columns), strict=True)
        )
    )
    if node.kernels and (rows is not None or columns is not None):
        moved = _window(node.shape, rows, columns)
        if moved is None:
            node = fuser.as_tensor(node, f"{name}.input")
        else:
            parts = tuple(part.selected(None, rows, columns) for part in node.parts)
            channels_of_both = (node.shape.channels,) * 2
            same = np.broadcast_to(1.0, channels_of_both) if fuser.is_outline else np.eye(node.shape.channels)
            node = replace(fuser.convolve(replace(node, parts=()), same[:, :, None, None], moved), parts=parts)
            rows = columns = None
    kernels = node.kernels
    if channels is not None:
        kernels = {}
        for reads, kernel in node.kernels.items():
            taken, mixed = kernel if fuser.is_outline else _take(kernel, channels), replace(reads, groups=1)
            kernels[mixed] = kernels[mixed] + taken if mixed in kernels else taken
    bias = node.bias if channels is None or fuser.is_outline else _take(node.bias, channels)
    for axis, index in ((1, rows), (2, columns)):
        if index is not None:
            bias = np.moveaxis(_take(np.moveaxis(bias, axis, 0), index), 0, axis)
    return Node(shape, kernels, bias, tuple(part.selected(channels, rows, columns) for part in node.parts))


def _take(array: Floats, index: Index) -> Floats:
    at = np.array(index, np.intp)
    found: Floats = array[at]
    found[at == NOTHING] = 0
    return found


def _window(shape: Shape, rows: Index | None, columns: Index | None) -> Window | None:
    """The convolution of one tap that moves pixels so; None where there is none."""
    down = sliding(tuple(range(shape.height)) if rows is None else rows, shape.height)
    across = sliding(tuple(range(shape.width)) if columns is None else columns, shape.width)
    if down is None or across is None or down.stride != across.stride:
        return None
    outputs = (shape.height if rows is None else len(rows), shape.width if columns is None else len(columns))
    return Window(1, 1, *outputs, down.stride, 1, down.before, across.before)


def joined(fuser: Fuser, nodes: list[Node], axis: int, name: str) -> Node:
    """Along channels, rows or columns: the sum of what each node places beside the others."""
    lengths = [node.shape[axis] for node in nodes]
    total, first = None, 0
    for number, (node, length) in enumerate(zip(nodes, lengths, strict=True)):
        index = (NOTHING,) * first + tuple(range(length)) + (NOTHING,) * (sum(lengths) - first - length)
        arguments: list[Index | None] = [None, None, None]
        arguments[axis] = index
        placed = select(fuser, node, f"{name}.{number}", *arguments)
        total = placed if total is None else total + placed
        first += length
    assert total is not None
    return total


def constant(fuser: Fuser, values: Floats) -> Node:
    """A map that depends on nothing."""
    shape = Shape(*values.shape)
    channels = 1 if fuser.is_outline else shape.channels
    return fuser.shift(Node(shape, {}, np.zeros((channels, *shape[1:]))), values)


def negated(fuser: Fuser, node: Node) -> Node:
    # An outline's taps are marks, which must not cancel: x minus the mean of its channels reads x.
    kernels = {reads: kernel if fuser.is_outline else -kernel for reads, kernel in node.kernels.items()}
    bias = node.bias if fuser.is_outline else -node.bias
    return Node(node.shape, kernels, bias, tuple(part.negated() for part in node.parts))
