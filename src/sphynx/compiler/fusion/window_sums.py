"""Windows of an axis; the mean over them of a convolution's outputs, as a linear map of sums of what it reads.

Each tap of the kernel meets a run of source positions while the outputs of a window go by; the run's sum is a public
map. So a mean behind a convolution needs no tensor in between: the kernel stays as it is, and reads sums, one for each
pair of a window and a tap.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.fusion.kernel_axis import Axis, Fixed, Sliding

Floats = NDArray[np.float64]
Spans = tuple[tuple[int, int], ...]
Counts = tuple[int, ...]  # of elements, one for each window of an axis


def sliding_spans(length: int, kernel: int, stride: int, before: int, count: int) -> Spans:
    """The span that each window sees of an axis that is padded before its first element."""
    starts = (stride * number - before for number in range(count))
    return tuple((max(0, start), min(length, start + kernel)) for start in starts)


def adaptive_spans(length: int, parts: int) -> Spans:
    """The span that each of `parts` windows sees of an axis; they overlap where `parts` does not divide it."""
    return tuple((n * length // parts, -(-(n + 1) * length // parts)) for n in range(parts))


def span_lengths(spans: Spans) -> Counts:
    return tuple(last - first for first, last in spans)


def count_weights(counts: Counts) -> tuple[Counts, int]:
    """Whole factors that make every window weigh the same, and their common divisor: 3, 2 with 6 for a cut 3x3."""
    divisor = lcm(*counts)
    return tuple(divisor // count for count in counts), divisor


@dataclass(frozen=True)
class SummedAxis:
    """`gathered` are positions of the source, side by side where runs have gaps; () where runs are windows of it."""

    axis: Axis  # over the sums
    gathered: tuple[int, ...]
    windows: Spans
    factors: tuple[int, ...]
    taps: tuple[int, ...]  # of the kernel, those that meet a position at all


def summed_axis(axis: Axis, length: int, spans: Spans, factors: tuple[int, ...], pitch: int) -> SummedAxis | None:
    """`pitch` sums lie between two windows. None where a tap meets nothing in some window, but not in all."""
    if isinstance(axis, Fixed):
        windows = tuple((at, at + 1) for at in range(length))
        whole = Fixed(axis.position, axis.positions, 0, len(spans))
        return SummedAxis(whole, (), windows, (1,) * length, tuple(range(axis.taps)))
    runs = {(w, tap): _run(axis, span, tap) for w, span in enumerate(spans) for tap in range(axis.taps)}
    taps = tuple(tap for tap in range(axis.taps) if any(runs[w, tap] for w in range(len(spans))))
    if not all(runs[w, tap] for w in range(len(spans)) for tap in taps):
        return None
    gathered: list[int] = []
    sums: list[tuple[int, int]] = []
    for w in range(len(spans)):
        for place in range(pitch):
            run = runs[w, taps[place]] if place < len(taps) else range(1)  # beyond its taps the kernel reads nothing
            if axis.stride == 1:
                sums.append((run[0], run[-1] + 1))
            else:
                sums.append((len(gathered), len(gathered) + len(run)))
                gathered += run
    spread = tuple(factor for factor in factors for _ in range(pitch))
    sliding = Sliding(len(sums), pitch, 0, len(taps))
    return SummedAxis(sliding, tuple(gathered), tuple(sums), spread, taps)


def _run(axis: Sliding, span: tuple[int, int], tap: int) -> range:
    """The positions that a tap reads for the outputs of a span."""
    positions = range(span[0] * axis.stride - axis.before + tap, span[1] * axis.stride - axis.before + tap, axis.stride)
    inside = [at for at in positions if 0 <= at < axis.length]
    return range(inside[0], inside[-1] + 1, axis.stride) if inside else range(0)


def summed_taps(kernel: Floats, axis: Axis, spans: Spans, factors: tuple[int, ...], summed: SummedAxis) -> Floats:
    """The kernel along its third axis, as the summed axis has it."""
    if isinstance(axis, Sliding):
        return kernel[:, :, list(summed.taps)]
    outputs, inputs, _, others = kernel.shape
    blocks = kernel.reshape(outputs, inputs, axis.positions, axis.outputs, others)
    whole = np.zeros((outputs, inputs, axis.positions, len(spans), others))
    for number, ((first, last), factor) in enumerate(zip(spans, factors, strict=True)):
        own = slice(max(first - axis.output, 0), max(last - axis.output, 0))
        whole[:, :, :, number] = factor * blocks[:, :, :, own].sum(axis=3)
    return whole.reshape(outputs, inputs, -1, others)
