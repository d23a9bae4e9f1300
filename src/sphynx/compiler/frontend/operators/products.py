"""Products of two feature maps, element by element or as matrices, and powers: out of gates, squares and public maps.

A gate multiplies the elements of a channel with one number. Where a product asks for anything else, its factors are
gathered first, one channel for each element of the factor that has fewer of them, and the product is gathered back:
both are public and cost nothing. A product of a number with itself is a square, which costs half.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.frontend.operators.layers import dense, lines
from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.value import Order, Value
from sphynx.compiler.frontend.operators.walker import Walker, Ways
from sphynx.compiler.fusion.affine import Node
from sphynx.program.ir import Pool, Square
from sphynx.space.tally import Shape


def product(walker: Walker, op: Operation) -> Value:
    """Mul of two maps that broadcast to one shape."""
    first, second = walker.value(op, 0), walker.value(op, 1)
    by_channel = _by_channel(walker, op, first, second)
    if by_channel is not None:
        return by_channel
    if first.node is second.node and first.dims == second.dims and (first.numbers() == second.numbers()).all():
        return _squared(walker, op, first)
    dims = _broadcast(op, first.dims, second.dims)
    walker.fits(op, dims)
    factors = [(value, _narrowed(value.numbers(), len(dims))) for value in (first, second)]
    factors.sort(key=lambda factor: factor[1].size)
    (gate, gates), (value, numbers) = factors
    along = [axis for axis, length in enumerate(dims) if gates.shape[axis] == 1 < length]
    axes = [axis for axis in range(len(dims)) if axis not in along] + along
    spread = np.broadcast_to(numbers, dims).transpose(axes).reshape(gates.size, -1)
    made = _multiplied(walker, op, (value, spread), (gate, gates.reshape(-1)))
    numbered = np.arange(prod(dims)).reshape([dims[axis] for axis in axes]).transpose(np.argsort(axes))
    return Value(_gathered(walker, made, numbered, _lay_out(dims), f"{op.name}.ordered"), dims)


def matrix_product(walker: Walker, op: Operation) -> Value:
    """MatMul of a map with constants, or of two maps: sums of products, each of the sums public."""
    if not walker.has_value(op, 1):
        return dense(walker, op)
    if not walker.has_value(op, 0):
        return lines(walker, op, walker.value(op, 1), walker.constant(op, 0, (None, None)), axis=-2)
    return _of_two_maps(walker, op)


def power(walker: Walker, op: Operation) -> Value:
    exponent = walker.numbers(op, 1)
    if exponent.size != 1 or exponent.reshape(-1)[0] not in (1, 2):
        raise op.refusal(
            "has an exponent other than 2", "Squares can be compiled; train the network without other powers."
        )
    value = walker.value(op)
    return value if exponent.reshape(-1)[0] == 1 else _squared(walker, op, value)


def _by_channel(walker: Walker, op: Operation, first: Value, second: Value) -> Value | None:
    """A map times one number for each of its channels, as squeeze and excitation has it: nothing has to move."""
    for value, spread in ((first, second), (second, first)):
        gate = _unexpand(spread)
        is_larger = value.is_map and prod(value.dims) >= prod(spread.dims)
        if is_larger and gate.dims == (value.dims[0], 1, 1):
            node, factor = (each.settled(walker.fuser, f"{op.name}.{n}").node for n, each in enumerate((value, gate)))
            return Value.of_map(walker.fuser.gated(node, factor, f"{op.name}.product"))
    return None


def _unexpand(value: Value) -> Value:
    """One number for each channel that a module spread over rows and columns itself."""
    if value.order is None or not value.is_map or not (value.order == value.order[:, :1, :1]).all():
        return value
    return value.moved(value.order[:, :1, :1])


def _squared(walker: Walker, op: Operation, value: Value) -> Value:
    if value.order is not None:
        value = value.settled(walker.fuser, op.name)
    source = walker.fuser.compared(value.node, f"{op.name}.input")
    return replace(value, node=walker.fuser.activate(Square(f"{op.name}.square", source)), unpadded=None)


def _of_two_maps(walker: Walker, op: Operation) -> Value:
    first, second = walker.value(op, 0), walker.value(op, 1)
    if min(len(first.dims), len(second.dims)) < 2 or first.dims[-1] != second.dims[-2]:
        shown = " and ".join("x".join(map(str, value.dims)) for value in (first, second))
        raise op.refusal(f"multiplies maps of {shown}", "Multiply matrices whose sizes match.")
    (rows, inner), columns = first.dims[-2:], second.dims[-1]
    several = _broadcast(op, first.dims[:-2], second.dims[:-2])
    walker.fits(op, (*several, rows, inner, columns))
    left = np.broadcast_to(first.numbers(), (*several, rows, inner))
    right = np.broadcast_to(second.numbers(), (*several, inner, columns))
    if columns >= rows:  # as few gates as can be, since each needs OTs
        spread = np.broadcast_to(right[..., None, :, :], (*several, rows, inner, columns))
        made = _multiplied(walker, op, (second, spread.reshape(-1, columns)), (first, left.reshape(-1)))
        numbered: Order = np.arange(spread.size).reshape(-1, inner, columns)
    else:
        spread = np.broadcast_to(left.swapaxes(-1, -2)[..., None, :], (*several, inner, columns, rows))
        made = _multiplied(walker, op, (first, spread.reshape(-1, rows)), (second, right.reshape(-1)))
        numbered = np.arange(spread.size).reshape(-1, inner, columns, rows).transpose(0, 3, 1, 2)
    fuser, shape = walker.fuser, Shape(prod(several) * rows, inner, columns)
    ordered = _gathered(walker, made, numbered, shape, f"{op.name}.ordered", truncates=False)
    each = tuple((at, at + 1) for at in range(columns))
    source = fuser.named(ordered, f"{op.name}.products")
    total = fuser.activate(Pool(f"{op.name}.sum", source, ((0, inner),), (1,), each, (1,) * columns))
    return Value(fuser.truncated(total, f"{op.name}.truncated"), (*several, rows, columns))


def _multiplied(walker: Walker, op: Operation, factor: tuple[Value, Order], gate: tuple[Value, Order]) -> Node:
    """The products, [gates, length, 1], of a factor's elements by number and of one gate for each row of them."""
    fuser = walker.fuser
    (value, numbers), (other, gates) = factor, gate
    source = _gathered(
        walker, value.node, numbers, Shape(gates.size, numbers.size // gates.size, 1), f"{op.name}.factor"
    )
    by = _gathered(walker, other.node, gates, Shape(gates.size, 1, 1), f"{op.name}.gates")
    return fuser.multiplied(source, by, f"{op.name}.product")


def _gathered(
    walker: Walker, node: Node, numbers: NDArray[np.integer[Any]], shape: Shape, name: str, *, truncates: bool = True
) -> Node:
    """The elements by number, laid out as this shape, with as many bits as an activation has: truncated where there are
    fewer of them, before or after."""
    fuser = walker.fuser
    is_first = truncates and numbers.size > node.shape.size
    node = fuser.truncated(node, f"{name}.truncated") if is_first else node
    flat = numbers.reshape(-1)
    if shape != node.shape or not (flat == np.arange(flat.size)).all():
        node = fuser.tensor(fuser.gather(name, fuser.named(node, f"{name}.elements"), shape, flat))
    return fuser.truncated(node, f"{name}.truncated") if truncates and not is_first else node


def _narrowed(numbers: Order, rank: int) -> Order:
    """The same with as many axes, each of one element where it repeats one."""
    found = numbers.reshape((1,) * (rank - numbers.ndim) + numbers.shape)
    for axis in range(rank):
        first = found.take([0], axis)
        found = first if (found == first).all() else found
    return found


def _broadcast(op: Operation, first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...]:
    try:
        return tuple(np.broadcast_shapes(first, second))
    except ValueError:
        shown = " and ".join("x".join(map(str, dims)) for dims in (first, second))
        raise op.refusal(f"multiplies maps of {shown}", "Multiply maps of the same shape, or by a constant.") from None


def _lay_out(dims: tuple[int, ...]) -> Shape:
    """As channels, rows and columns; a vector is a map of one pixel."""
    return Shape(dims[0], 1, 1) if len(dims) == 1 else Shape(dims[0], prod(dims[1:-1]), dims[-1])


WAYS: Ways = {"MatMul": matrix_product, "Pow": power}
