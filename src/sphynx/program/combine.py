"""The public maps `Combine` and `Gather`, on whatever numbers their sources come in: real ones, int64, or shares modulo
2^32 or 2^64, which wrap around as the ring does. No torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from sphynx.program.convolve import EXACT_INTEGER, Array, magnitude
from sphynx.program.steps import NOTHING, Combine, Gather, Summand
from sphynx.space.tally import Shape

Places = slice | Array
EXACT_WORD = 1 << 64


def combined(
    step: Combine, tensors: Mapping[str, Array], constants: Array | None = None, factors: Array | None = None
) -> Array:
    """[n, channels, height, width]. `constants` are added to each channel: one party of two leaves them out.

    `factors` of the summands are given where they are real numbers; else the step has them.
    """
    first, *others = step.summands
    if factors is None and step.factors:
        factors = np.array(step.factors, np.int64).astype(tensors[first.source].dtype)
    source = tensors[first.source]
    if constants is None and not any(first.indices):  # the first summand is where the sum begins: no zeros to add to
        total = _scaled(first, source, None if factors is None else factors[0])
        if total is source:
            total = source.copy()
        if first.negative:
            np.negative(total, out=total)
    else:
        total = np.zeros((len(source), *step.shape), source.dtype)
        if constants is not None:
            total += constants.astype(source.dtype)[:, None, None]
        _add(total, first, source, None if factors is None else factors[0])
    for number, summand in enumerate(others, start=1):
        _add(total, summand, tensors[summand.source], None if factors is None else factors[number])
    return total


def add_back(step: Combine, total: Array, shapes: Mapping[str, Shape]) -> Iterator[tuple[str, Array]]:
    """The transposed map, modulo 2^64: for each summand its source and what `total` on the sum is on that source."""
    for summand, factor in zip(step.summands, step.integer_factors, strict=True):
        targets, origins = zip(*(_places(index) for index in summand.indices), strict=True)
        part = total
        for axis, target in enumerate(targets, start=1):
            part = part[(slice(None),) * axis + (target,)]
        part = part * np.uint64(factor % EXACT_WORD)
        for axis, (origin, length) in enumerate(zip(origins, shapes[summand.source], strict=True), start=1):
            part = _scatter(part, axis, origin, length)
        yield summand.source, part


def _scatter(part: Array, axis: int, places: Places, length: int) -> Array:
    """Add what lies along an axis up in the places that it was read from, some of them perhaps several times."""
    made = np.zeros((length, *part.shape[:axis], *part.shape[axis + 1 :]), part.dtype)
    np.add.at(made, _positions(places, length), np.moveaxis(part, axis, 0))
    return np.moveaxis(made, 0, axis)


def gathered(step: Gather, source: Array) -> Array:
    """[n, channels, height, width], of single elements of the source."""
    indices = np.array(step.indices, np.intp)
    made: Array = source.reshape(len(source), -1)[:, indices]
    made[:, indices == NOTHING] = 0
    return made.reshape(len(source), *step.shape)


def gather_back(step: Gather, total: Array, shape: Shape) -> Array:
    """The transposed map: what `total` on the output is on the source, whose elements may be read several times."""
    indices = np.array(step.indices, np.intp)
    read = np.flatnonzero(indices != NOTHING)
    made = np.zeros((shape.size, len(total)), total.dtype)
    np.add.at(made, indices[read], total.reshape(len(total), -1)[:, read].T)
    return np.ascontiguousarray(made.T).reshape(len(total), *shape)


def check_sum(step: Combine, tensors: Mapping[str, Array]) -> None:
    """OverflowError where the sum of integers might not fit 64 bits."""
    sizes = (magnitude(tensors[summand.source]) for summand in step.summands)
    largest = sum(size * abs(factor) for size, factor in zip(sizes, step.integer_factors, strict=True))
    if largest + max(map(abs, step.constants), default=0) >= EXACT_INTEGER:
        raise OverflowError


def _add(total: Array, summand: Summand, source: Array, factor: Any) -> None:
    targets, origins = zip(*(_places(index) for index in summand.indices), strict=True)
    part = source
    for axis, origin in enumerate(origins, start=1):
        part = part[(slice(None),) * axis + (origin,)]
    part = _scaled(summand, part, factor)
    # Slices reach into the total; lists of positions, which are rare, do so one axis at a time.
    if all(isinstance(target, slice) for target in targets):
        view = total[(slice(None), *targets)]
        (np.subtract if summand.negative else np.add)(view, part, out=view)
        return
    lists = [_positions(target, length) for target, length in zip(targets, total.shape[1:], strict=True)]
    index = np.ix_(np.arange(len(total)), *lists)
    total[index] = total[index] - part if summand.negative else total[index] + part


def _scaled(summand: Summand, part: Array, factor: Any) -> Array:
    if summand.shift:
        part = part << part.dtype.type(summand.shift)
    return part if factor is None else part * factor


def _places(index: tuple[int, ...]) -> tuple[Places, Places]:
    """The outputs that get something along one axis, and what they read: as slices where the steps are even."""
    if not index:
        return slice(None), slice(None)
    read = np.array(index, np.intp)
    outputs = np.flatnonzero(read != NOTHING)
    return _evenly(outputs), _evenly(read[outputs])


def _evenly(positions: Array) -> Places:
    if len(positions) < 2:
        return slice(int(positions[0]), int(positions[0]) + 1) if len(positions) else slice(0, 0)
    step = int(positions[1] - positions[0])
    if step < 1 or (np.diff(positions) != step).any():
        return positions
    return slice(int(positions[0]), int(positions[-1]) + 1, step)


def _positions(places: Places, length: int) -> Array:
    return np.arange(length)[places] if isinstance(places, slice) else places
