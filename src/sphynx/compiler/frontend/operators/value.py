"""A feature map on its way through a graph: a node, and how the graph sees its elements.

What only moves elements (Reshape, Transpose, Slice, Split, DepthToSpace ...) moves their numbers in an array here; the
node is asked for when an operation computes. Then the order becomes selections (fusion/select.py), which cost nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.fusion.affine import Node
from sphynx.compiler.fusion.fuse import Fuser
from sphynx.compiler.fusion.select import select
from sphynx.compiler.fusion.selection import Index
from sphynx.program.ir import NOTHING
from sphynx.space.tally import Shape

MOST_PIECES = 64  # selections that a value may be the sum of; beyond, its elements are gathered one by one
Order = NDArray[np.int64]
Pads = tuple[tuple[int, int], tuple[int, int]]  # before and after, of rows and of columns


@dataclass(frozen=True, eq=False)
class Value:
    """One image's part: `dims` leave out the batch. `order` numbers the node's elements, NOTHING is a zero; None stands
    for all of them as they lie."""

    node: Node
    dims: tuple[int, ...]
    order: Order | None = None
    unpadded: tuple[Node, Pads] | None = None  # what a Pad made it from
    unreduced: Unreduced | None = None  # of a mean that only another mean reads: the node is not its own
    has_strayed: bool = False  # the batch lies behind another axis, as in [3, n, ...]: `dims` are all axes

    @classmethod
    def of_map(cls, node: Node) -> Value:
        return cls(node, tuple(node.shape))

    @classmethod
    def of_vector(cls, node: Node) -> Value:
        return cls(node, (node.shape.size,))

    @property
    def is_map(self) -> bool:
        return len(self.dims) == 3

    def numbers(self) -> Order:
        """Numbers of the node's elements, as the graph sees them."""
        return np.arange(prod(self.dims)).reshape(self.dims) if self.order is None else self.order

    def moved(self, order: Order) -> Value:
        """The value with the elements that these numbers name."""
        natural = order.size == self.node.shape.size and bool((order.reshape(-1) == np.arange(order.size)).all())
        return replace(self, dims=order.shape, order=None if natural else order, unpadded=None)

    def whole(self) -> Order:
        """The numbers with all axes that the graph sees, the batch's among them."""
        return self.numbers() if self.has_strayed else self.numbers()[None]

    def moved_whole(self, order: Order, *, keeps_axes: bool = False) -> Value:
        """The value with these elements, given with all axes: where the first has one element it is the batch's, unless
        the axes are those that there were, and another one was first."""
        has_strayed = len(order) != 1 or (keeps_axes and self.has_strayed)
        return replace(self.moved(order if has_strayed else order[0]), has_strayed=has_strayed)

    def settled(self, fuser: Fuser, name: str) -> Value:
        """The same with the node's elements in their order; a vector is a map of one pixel."""
        if self.order is None and self.dims in (tuple(self.node.shape), (self.node.shape.size,)):
            flat_map = not self.is_map and self.node.shape[1:] != (1, 1)
            if not flat_map:
                return self
        dims = self.dims if self.is_map else (prod(self.dims), 1, 1)
        order = self.numbers().reshape(dims)
        indices = list(islice(pieces(order, self.node.shape), MOST_PIECES + 1))
        if len(indices) > MOST_PIECES:
            source = fuser.named(self.node, f"{name}.elements")
            gathered = fuser.gather(f"{name}.gathered", source, Shape(*dims), order.reshape(-1))
            return Value(fuser.tensor(gathered), self.dims)
        parts = [select(fuser, self.node, f"{name}.{number}", *index) for number, index in enumerate(indices)]
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return Value(total, self.dims)


@dataclass(frozen=True, eq=False)
class Unreduced:
    """A mean that is not computed yet: of which value, along which of its axes, and times what."""

    value: Value
    axes: frozenset[int]
    places: tuple[int, ...]  # the value's axes that are those of the mean
    factor: float


def pieces(order: Order, shape: Shape) -> Iterator[tuple[Index, Index, Index]]:
    """Few products of three indices that add up to the order: channels, rows, columns that read alike go together."""
    present = order != NOTHING
    coordinates = _coordinates(order, shape)
    if not present.any():  # padding alone
        yield tuple((NOTHING,) * length for length in order.shape)
        return
    classes = [_classes(coordinates, axis) for axis in range(3)]
    for channels in classes[0]:
        for rows in classes[1]:
            for columns in classes[2]:
                block = np.ix_(channels, rows, columns)
                if present[block].any():
                    read = [coordinate[block] for coordinate in coordinates]
                    yield tuple(  # type: ignore[misc]  # three
                        _index(own, _along(read[axis], axis), order.shape[axis])
                        for axis, own in enumerate((channels, rows, columns))
                    )


def _coordinates(order: Order, shape: Shape) -> list[Order]:
    """The channel, row and column of each element, or NOTHING."""
    rest, columns = np.divmod(order, shape.width)
    channels, rows = np.divmod(rest, shape.height)
    return [np.where(order == NOTHING, NOTHING, axis) for axis in (channels, rows, columns)]


def _classes(coordinates: list[Order], axis: int) -> list[Order]:
    """Positions along an axis that read the same of the two other axes."""
    others = [np.moveaxis(coordinate, axis, 0) for number, coordinate in enumerate(coordinates) if number != axis]
    keys: dict[bytes, list[int]] = {}
    for position in range(coordinates[0].shape[axis]):
        key = b"".join(np.ascontiguousarray(other[position]).tobytes() for other in others)
        keys.setdefault(key, []).append(position)
    return [np.array(positions) for positions in keys.values()]


def _along(read: Order, axis: int) -> Order:
    """The element that each position of an axis reads, where it reads something."""
    flat: Any = np.moveaxis(read, axis, 0).reshape(read.shape[axis], -1)
    return flat.max(axis=1)  # type: ignore[no-any-return]


def _index(own: Order, read: Order, length: int) -> Index:
    index = np.full(length, NOTHING)
    index[own] = read
    return tuple(index.tolist())
