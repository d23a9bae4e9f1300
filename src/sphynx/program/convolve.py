"""Convolution of batches in numpy, for real numbers and, exactly, for integers. No torch.

Integers go through the floating-point matrix product as long as no partial sum can reach 2^53, below which doubles are
exact in any order of summation; that is some fifty times faster than numpy's integer product, which takes over there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.program.steps import Term

Array = NDArray[Any]

EXACT_DOUBLE = 1 << 53
EXACT_INTEGER = 1 << 63
_COLUMN_BYTES = 1 << 24  # of unfolded input at once: near the processor, and memory that is taken again at once
_GROUPED_CHANNELS = 32  # at least, at once: fewer are slower than the zeros among them


def convolve(x: Array, weights: Array, term: Term, size: tuple[int, int], reach: int | None = None) -> Array:
    """x [n, channels, height, width] to [n, out channels, *size], int64 or float64 as x is.

    Raises OverflowError where the result of integers might not fit 64 bits: `reach` bounds it, where that is known.
    """
    if term.groups > 1:
        return _convolve_groups(x, weights, term, size, reach)
    kind: type[np.float64] | type[np.int64] = np.float64
    if x.dtype != np.float64:
        bound = magnitude(x) * l1_norm(weights) if reach is None else reach
        if bound >= EXACT_INTEGER:
            raise OverflowError
        kind = np.float64 if bound < EXACT_DOUBLE else np.int64
    return Kernel(weights, term, kind)(x, size)


class Kernel:
    """The weights of a convolution without groups as the matrix that unfolded inputs are multiplied by."""

    def __init__(self, weights: Array, term: Term, kind: type[np.float64] | type[np.int64] = np.float64) -> None:
        self.term, self.taps = term, list(_used_taps(weights))
        parts = [weights[:, :, row, column] for row, column in self.taps]
        self.matrix: Array = np.concatenate(parts or [weights[:, :0, 0, 0]], axis=1).astype(kind)

    def __call__(self, x: Array, size: tuple[int, int]) -> Array:
        """x [n, channels, height, width] to [n, out channels, *size], in the numbers that x has."""
        matrix, outputs, positions = self.matrix, len(self.matrix), size[0] * size[1]
        if not self.taps or not len(x):
            return np.zeros((len(x), outputs, *size), x.dtype)
        out = np.empty((len(x), outputs, positions), x.dtype)
        step = min(len(x), max(1, _COLUMN_BYTES // (8 * matrix.shape[1] * positions)))
        columns = np.zeros((len(self.taps), x.shape[1], step, *size), matrix.dtype)  # what no tap writes stays zero
        for start in range(0, len(x), step):
            part = x[start : start + step]
            if len(part) < step:
                columns = np.ascontiguousarray(columns[:, :, : len(part)])
            _unfold(part, self.taps, self.term, columns)
            product = matrix @ columns.reshape(matrix.shape[1], -1)
            out[start : start + step] = product.reshape(outputs, -1, positions).swapaxes(0, 1)
        return out.reshape(len(x), outputs, *size)


def _convolve_groups(x: Array, weights: Array, term: Term, size: tuple[int, int], reach: int | None) -> Array:
    """Some groups at a time, as one convolution of their channels: pairs that share no group are left out elsewhere."""
    outputs, inputs = (length // term.groups for length in weights.shape[:2])
    together = max(1, _GROUPED_CHANNELS // max(outputs, inputs))
    parts = []
    for first in range(0, term.groups, together):
        rows = slice(first * outputs, (first + together) * outputs)
        columns = slice(first * inputs, (first + together) * inputs)
        parts.append(convolve(x[:, columns], weights[rows, columns], replace(term, groups=1), size, reach))
    return np.concatenate(parts, axis=1)


def convolve_back(total: Array, weights: Array, term: Term, size: tuple[int, int]) -> Array:
    """The transposed convolution modulo 2^64: uint64 [n, out channels, *] to [n, channels, *size], the source's size.

    Words are cut into limbs short enough for sums of products to be exact doubles."""
    outputs, inputs = (length // term.groups for length in weights.shape[:2])
    made = np.zeros((len(total), weights.shape[1], *size), np.uint64)
    for group in range(term.groups):
        rows, columns = slice(group * outputs, (group + 1) * outputs), slice(group * inputs, (group + 1) * inputs)
        _add_back(made[:, columns], total[:, rows], weights[rows, columns], term)
    return made


def _add_back(made: Array, total: Array, weights: Array, term: Term) -> None:
    out_size = total.shape[2], total.shape[3]
    for row, column in _used_taps(weights):
        matrix = weights[:, :, row, column].T
        rows, from_rows = _read(term.dilation * row - term.pad_top, term.stride, made.shape[2], out_size[0])
        cols, from_cols = _read(term.dilation * column - term.pad_left, term.stride, made.shape[3], out_size[1])
        read = total[:, :, rows, cols]
        if read.size:
            product = _product_of_words(matrix, read.reshape(*read.shape[:2], -1))
            made[:, :, from_rows, from_cols] += product.reshape(len(total), -1, *read.shape[2:])


def _product_of_words(matrix: Array, words: Array) -> Array:
    """matrix @ words modulo 2^64, for small integers and uint64 [n, rows, columns]."""
    limb_bits = min(32, 52 - l1_norm(matrix).bit_length())
    if limb_bits < 1:
        raise OverflowError
    factors, product = matrix.astype(np.float64), np.zeros((len(words), len(matrix), words.shape[2]), np.uint64)
    for shift in range(0, 64, limb_bits):
        limb = (words >> np.uint64(shift)) & np.uint64((1 << limb_bits) - 1)
        product += (factors @ limb.astype(np.float64)).astype(np.int64).view(np.uint64) << np.uint64(shift)
    return product


def magnitude(x: Array) -> int:
    """The largest absolute value of integers, as a Python integer."""
    return max(int(x.max(initial=0)), -int(x.min(initial=0)))


def l1_norm(matrix: Array) -> int:
    """The largest sum of absolute values that one output adds up: what a unit of input can become."""
    rows = np.abs(matrix.astype(np.int64)).reshape(len(matrix), -1)
    return int(rows.sum(axis=1).max(initial=0))


def _used_taps(weights: Array) -> Iterator[tuple[int, int]]:
    """Kernel positions at which any weight is not zero: a fused kernel holds dilated ones and is sparse."""
    rows, columns = np.nonzero(np.any(weights != 0, axis=(0, 1)))
    return zip(rows.tolist(), columns.tolist(), strict=True)


def _unfold(x: Array, taps: list[tuple[int, int]], term: Term, columns: Array) -> None:
    """Fill [taps, channels, n, *size]: what each output position reads, for one product over the whole batch."""
    height, width = x.shape[2:]
    if len(taps) > term.stride**2:  # then most of it is read more than once
        x = x.astype(columns.dtype, copy=False)
    by_channel = x.swapaxes(0, 1)
    for number, (row, column) in enumerate(taps):
        rows, from_rows = _read(term.dilation * row - term.pad_top, term.stride, height, columns.shape[3])
        cols, from_cols = _read(term.dilation * column - term.pad_left, term.stride, width, columns.shape[4])
        columns[number, :, :, rows, cols] = by_channel[:, :, from_rows, from_cols]


def _read(offset: int, stride: int, length: int, out_length: int) -> tuple[slice, slice]:
    """The outputs whose tap at stride * y + offset lies inside the input, and what they read."""
    first = max(0, -(offset // stride))
    last = min(out_length, (length - 1 - offset) // stride + 1)
    if last <= first:
        return slice(0, 0), slice(0, 0)
    start = stride * first + offset
    return slice(first, last), slice(start, start + stride * (last - first - 1) + 1, stride)
