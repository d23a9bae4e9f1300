"""A node's kernels as the terms of one linear map: as few convolutions as possible, of tensors and of their borders.

Kernels that read one tensor with one stride become one kernel, cut to the taps that meet a pixel and put on a dilated
grid where all other taps are zero. Weights of single source positions (`affine.Fixed`) become convolutions of crops:
in a crop of no more positions than the stride, every pair of an output and a position has a tap of its own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from sphynx.compiler.fusion.affine import Floats, Node, Reads, consolidated
from sphynx.compiler.fusion.kernel_axis import Axis, Fixed, Sliding
from sphynx.program.ir import Term
from sphynx.space.tally import Shape

Run = tuple[int, int]  # positions of an axis: the first, and the one after the last


@dataclass(frozen=True)
class Crop:
    """Some rows and columns of a tensor; None stands for all of them."""

    source: str
    rows: Run | None
    columns: Run | None


def merged_terms(node: Node) -> Iterator[tuple[Crop, Term, Floats]]:
    """The terms that add up to the node, less its bias map; a term's source is still to be named after its crop."""
    crops: dict[Crop, dict[Reads, Floats]] = defaultdict(dict)
    for crop, reads, kernel in _crop(node):
        crops[crop][reads] = crops[crop][reads] + kernel if reads in crops[crop] else kernel
    for crop, kernels in crops.items():
        for reads, kernel in consolidated(kernels).items():
            yield crop, *_trim(reads, kernel, node.shape)


def _crop(node: Node) -> Iterator[tuple[Crop, Reads, Floats]]:
    """Every kernel as one that slides over a tensor or a crop of it. What is zero throughout is left out."""
    groups: dict[tuple[str, int, int], list[tuple[Reads, Floats]]] = defaultdict(list)
    for reads, kernel in consolidated(node.kernels).items():
        if kernel.any() or len(node.kernels) == 1:
            groups[reads.source, _stride(reads.rows), _stride(reads.columns)].append((reads, kernel))
    for (source, row_stride, column_stride), parts in groups.items():
        row_runs = _runs((reads.rows for reads, _ in parts), column_stride)
        column_runs = _runs((reads.columns for reads, _ in parts), row_stride)
        # A crop's own stride is free where both of its axes are fixed.
        stride = row_stride or column_stride or max(last - first for first, last in (*row_runs, *column_runs))
        for reads, kernel in parts:
            for rows, row_axis, part in _slid(reads.rows, row_runs, stride, kernel):
                for columns, column_axis, slid in _slid(reads.columns, column_runs, stride, part.swapaxes(2, 3)):
                    if slid.any() or len(node.kernels) == 1:
                        moved = replace(reads, rows=row_axis, columns=column_axis)
                        yield Crop(source, rows, columns), moved, slid.swapaxes(2, 3)


def _stride(axis: Axis) -> int:
    """0 stands for a fixed axis."""
    return axis.stride if isinstance(axis, Sliding) else 0


def _runs(axes: Iterable[Axis], most: int) -> list[Run]:
    """The positions of fixed axes, neighbours together, `most` at a time where that is not 0."""
    blocks = [range(axis.position, axis.position + axis.positions) for axis in axes if isinstance(axis, Fixed)]
    runs: list[Run] = []
    for position in sorted(set().union(*blocks)):
        if runs and runs[-1][1] == position and (not most or position - runs[-1][0] < most):
            runs[-1] = (runs[-1][0], position + 1)
        else:
            runs.append((position, position + 1))
    return runs


def _slid(axis: Axis, runs: list[Run], stride: int, kernel: Floats) -> Iterator[tuple[Run | None, Sliding, Floats]]:
    """Along the kernel's third axis: output y's weight for position i of a crop is tap i + stride * (last y - y)."""
    if isinstance(axis, Sliding):
        yield None, axis, kernel
        return
    outputs, inputs, _, others = kernel.shape
    blocks = kernel.reshape(outputs, inputs, axis.positions, axis.outputs, others)
    before = stride * (axis.output + axis.outputs - 1)
    for first, last in runs:
        positions = range(max(first, axis.position), min(last, axis.position + axis.positions))
        if positions:
            length = last - first
            slid = np.zeros((outputs, inputs, stride * (axis.outputs - 1) + length, others))
            for position in positions:
                own = slid[:, :, position - first : position - first + stride * (axis.outputs - 1) + 1 : stride]
                own[:] = blocks[:, :, position - axis.position, ::-1]
            yield (first, last), Sliding(length, stride, before, slid.shape[2]), slid


def _trim(reads: Reads, kernel: Floats, out: Shape) -> tuple[Term, Floats]:
    """Without the border of taps that are zero or meet no pixel, and on a dilated grid where all others are zero."""
    assert isinstance(reads.rows, Sliding) and isinstance(reads.columns, Sliding)
    used = np.any(kernel != 0, axis=(0, 1))
    rows = _useful(used.any(axis=1), reads.rows, out.height)
    columns = _useful(used.any(axis=0), reads.columns, out.width)
    row_gap, column_gap = (gcd(*(n - taps[0] for n in taps)) for taps in (rows, columns))
    dilation = max(1, gcd(row_gap, column_gap))
    kernel = kernel[:, :, rows[0] : rows[-1] + 1 : dilation, columns[0] : columns[-1] + 1 : dilation]
    top, left = reads.rows.before - rows[0], reads.columns.before - columns[0]
    height, width = kernel.shape[2:]
    term = Term(reads.source, height, width, reads.rows.stride, dilation, top, left, groups=reads.groups)
    return term, np.ascontiguousarray(kernel)


def _useful(used: Floats, axis: Sliding, outputs: int) -> list[int]:
    """Taps with a weight that some output multiplies with a pixel; one tap where there is none."""
    stride, before = axis.stride, axis.before

    def meets(tap: int) -> bool:
        first = max(0, -((tap - before) // stride))  # the first output that reads no pixel before the first one
        return first < outputs and stride * first - before + tap < axis.length

    return [tap for tap in np.flatnonzero(used).tolist() if meets(tap)] or [0]
