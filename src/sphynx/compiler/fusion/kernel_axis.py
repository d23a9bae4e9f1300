"""One axis of a kernel: which positions of its source each output reads, and what composing convolutions makes of it.

- `Sliding`: the same weights for every output, as in any convolution;
- `Fixed`: a few positions of the source, each with weights of its own for every output. There is no border to continue
  beyond, so composing it is exact.

Composing a sliding axis gives a wider sliding axis, and fixed ones, to be subtracted, for the positions that it reads
through the node's own border (affine.py says why).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp] | slice  # taps along an axis; a slice where they are neighbours, which is far faster


@dataclass(frozen=True)
class Sliding:
    """Output y reads positions stride * y - before .. of the source axis."""

    length: int  # of the source axis
    stride: int
    before: int
    taps: int


@dataclass(frozen=True)
class Fixed:
    """A weight for every pair of a few neighbouring positions and a few neighbouring outputs, position by position."""

    position: int  # the first
    positions: int
    output: int  # the first
    outputs: int

    @property
    def taps(self) -> int:
        return self.positions * self.outputs


Axis = Sliding | Fixed


@dataclass(frozen=True)
class Along:
    """A convolution's window along one axis."""

    taps: int
    outputs: int
    stride: int
    dilation: int
    before: int

    def reads(self, tap: int, first: int | None = None, end: int | None = None) -> Iterator[tuple[int, int]]:
        """(output, position) pairs, of the positions from `first` on and before `end`."""
        start = 0 if first is None else self._outputs_before(tap, first)
        stop = self.outputs if end is None else self._outputs_before(tap, end)
        return ((y, self.stride * y - self.before + self.dilation * tap) for y in range(start, stop))

    def _outputs_before(self, tap: int, position: int) -> int:
        """How many outputs read a position before this one."""
        wanted = -((self.dilation * tap - self.before - position) // self.stride)
        return min(self.outputs, max(0, wanted))


@dataclass(frozen=True, eq=False)
class Part:
    """An axis of the composed kernel; per outer tap, which inner taps are added to which of its own."""

    axis: Axis
    sign: int
    moves: tuple[tuple[Places, Places], ...]


@lru_cache(maxsize=4096)
def composed_axis(inner: Axis, length: int, outer: Along) -> tuple[Part, ...]:
    """`length` is the node's own along this axis."""
    return tuple(_compose_fixed(inner, outer) if isinstance(inner, Fixed) else _compose_sliding(inner, length, outer))


def _compose_fixed(inner: Fixed, outer: Along) -> Iterator[Part]:
    moves = [
        [
            (inner.position + n, n * inner.outputs + r - inner.output, y)
            for y, r in outer.reads(tap, inner.output, inner.output + inner.outputs)
            for n in range(inner.positions)
        ]
        for tap in range(outer.taps)
    ]
    return _fixed_part(1, moves)


def _compose_sliding(inner: Sliding, length: int, outer: Along) -> Iterator[Part]:
    spread = inner.stride * outer.dilation
    taps = spread * (outer.taps - 1) + inner.taps
    axis = Sliding(inner.length, inner.stride * outer.stride, inner.stride * outer.before + inner.before, taps)
    own = slice(0, inner.taps)
    yield Part(axis, 1, tuple((own, slice(spread * tap, spread * tap + inner.taps)) for tap in range(outer.taps)))
    for first, end in ((None, 0), (length, None)):  # before the node's own pixels, and after them
        moves = [
            [
                (position, tap, y)
                for y, r in outer.reads(outer_tap, first, end)
                for tap in range(inner.taps)
                if 0 <= (position := inner.stride * r - inner.before + tap) < inner.length
            ]
            for outer_tap in range(outer.taps)
        ]
        yield from _fixed_part(-1, moves)


def _fixed_part(sign: int, moves: list[list[tuple[int, int, int]]]) -> Iterator[Part]:
    """`moves`: per outer tap, the position that an inner tap reads, the inner tap, the output."""
    if not any(moves):
        return
    positions, _, outputs = zip(*(move for part in moves for move in part), strict=True)
    first, output = min(positions), min(outputs)
    axis = Fixed(first, max(positions) - first + 1, output, max(outputs) - output + 1)
    yield Part(
        axis,
        sign,
        tuple(
            (
                np.array([tap for _, tap, _ in part], np.intp),
                np.array([(q - first) * axis.outputs + y - output for q, _, y in part], np.intp),
            )
            for part in moves
        ),
    )


def united(axes: Iterable[Axis]) -> dict[Axis, Axis]:
    """Map each axis to one that holds all of its taps and those of its kin: equal strides, or positions that touch."""
    found: dict[Axis, Axis] = {}
    for kin in _kin(set(axes)):
        whole = _hull(kin)
        found.update((axis, whole) for axis in kin)
    return found


def places(axis: Axis, whole: Axis) -> Places:
    """The places of an axis's taps in one that holds them."""
    if isinstance(axis, Sliding) and isinstance(whole, Sliding):
        return slice(whole.before - axis.before, whole.before - axis.before + axis.taps)
    assert isinstance(axis, Fixed) and isinstance(whole, Fixed)
    rows = axis.position - whole.position + np.arange(axis.positions)
    return (rows[:, None] * whole.outputs + axis.output - whole.output + np.arange(axis.outputs)).reshape(-1)


def _kin(axes: set[Axis]) -> Iterator[list[Axis]]:
    sliding = [axis for axis in axes if isinstance(axis, Sliding)]
    for stride in {axis.stride for axis in sliding}:
        yield [axis for axis in sliding if axis.stride == stride]
    cluster: list[Axis] = []
    end = -1
    for axis in sorted((axis for axis in axes if isinstance(axis, Fixed)), key=lambda axis: axis.position):
        if cluster and axis.position > end:
            yield cluster
            cluster = []
        cluster.append(axis)
        end = max(end, axis.position + axis.positions)
    if cluster:
        yield cluster


def _hull(kin: list[Axis]) -> Axis:
    sliding = [axis for axis in kin if isinstance(axis, Sliding)]
    if sliding:
        before = max(axis.before for axis in sliding)
        return replace(sliding[0], before=before, taps=max(before - axis.before + axis.taps for axis in sliding))
    fixed = [axis for axis in kin if isinstance(axis, Fixed)]
    position, output = min(axis.position for axis in fixed), min(axis.output for axis in fixed)
    positions = max(axis.position + axis.positions for axis in fixed) - position
    return Fixed(position, positions, output, max(axis.output + axis.outputs for axis in fixed) - output)
