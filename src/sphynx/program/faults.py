"""Find what is wrong with a program that somebody else wrote: every index, slice, window and range, before any is used.

`structural_faults` is for graphs of real numbers as well, `range_faults` for programs alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from sphynx.program.steps import (
    MAX_EXTENT,
    MAX_RING_BITS,
    MAX_SCALE,
    MAX_TENSOR_SIZE,
    NOTHING,
    Affine,
    Combine,
    Compared,
    Curve,
    Gate,
    Gather,
    Linear,
    Pool,
    Relu,
    Square,
    Step,
    Truncate,
    made_shape,
)
from sphynx.space.tally import Shape


def structural_faults(input_name: str, image: Shape, steps: Sequence[Step]) -> list[str]:
    """The first thing that keeps the steps from being evaluated: nothing after it could be judged."""
    if min(image) < 1 or image.size > MAX_TENSOR_SIZE:
        return [f"{image} is not a valid image shape"]
    if not steps:
        return ["it has no steps"]
    shapes = {input_name: image}
    for step in steps:
        faults = [f"{step.name}: there is no earlier tensor {name!r}" for name in step.sources if name not in shapes]
        if step.name in shapes or not step.name:
            faults.append(f"{step.name!r}: the name is taken or empty")
        if faults:
            return faults
        shape = shapes[step.name] = made_shape(step, shapes)
        if min(shape) < 1 or shape.size > MAX_TENSOR_SIZE:
            return [f"{step.name}: a tensor of {shape} is empty or too large"]
        faults = list(_step_faults(step, shapes))
        if faults:
            return faults
    return []


def _step_faults(step: Step, shapes: Mapping[str, Shape]) -> Iterator[str]:
    if isinstance(step, Linear):
        if not step.terms:
            yield f"{step.name}: it has no term"
        for term in step.terms:
            kernel = Shape(shapes[term.source].channels, term.kernel_height, term.kernel_width)
            if step.shape.channels * kernel.size > MAX_TENSOR_SIZE:
                yield f"{step.name}: a kernel of {kernel} is too large"
            if kernel.channels % term.groups or step.shape.channels % term.groups:
                yield f"{step.name}: {term.groups} groups do not divide its channels"
    elif isinstance(step, Pool):
        source = shapes[step.source]
        yield from _window_faults(step, "row", step.row_windows, step.row_factors, source.height)
        yield from _window_faults(step, "column", step.column_windows, step.column_factors, source.width)
    elif isinstance(step, Combine):
        yield from _combine_faults(step, shapes)
    elif isinstance(step, Gather):
        yield from _gather_faults(step, shapes[step.source].size)
    elif isinstance(step, Gate) and shapes[step.gate] != Shape(shapes[step.source].channels, 1, 1):
        yield f"{step.name}: a gate of {shapes[step.gate]} does not fit a map of {shapes[step.source]}"


def _window_faults(
    step: Pool, axis: str, windows: tuple[tuple[int, int], ...], factors: tuple[int, ...], length: int
) -> Iterator[str]:
    if len(windows) != len(factors):
        yield f"{step.name}: it has {len(windows)} {axis} windows but {len(factors)} factors"
    elif any(not 0 <= first < last <= length for first, last in windows):
        yield f"{step.name}: a {axis} window is empty or outside its source"
    elif not all(1 <= factor <= MAX_EXTENT for factor in factors):
        yield f"{step.name}: a {axis} factor is outside 1 .. {MAX_EXTENT}"


def _combine_faults(step: Combine, shapes: Mapping[str, Shape]) -> Iterator[str]:
    if not step.summands:
        yield f"{step.name}: it has no summand"
    for summand in step.summands:
        source = shapes[summand.source]
        for axis, index, length, outputs in zip(
            ("channel", "row", "column"), summand.indices, source, step.shape, strict=True
        ):
            if len(index or range(length)) != outputs:
                yield f"{step.name}: {len(index or range(length))} {axis}s of {summand.source} where {outputs} are made"
            elif index and (min(index) < NOTHING or max(index) >= length):
                yield f"{step.name}: a {axis} of {summand.source} is outside 0 .. {length - 1}"
    if len(step.constants) not in (0, step.shape.channels):
        yield f"{step.name}: it has {len(step.constants)} constants for {step.shape.channels} channels"
    if len(step.factors) not in (0, len(step.summands)):
        yield f"{step.name}: it has {len(step.factors)} factors for {len(step.summands)} summands"
    if any(abs(factor) > MAX_EXTENT for factor in step.factors):
        yield f"{step.name}: a factor is beyond {MAX_EXTENT}"


def _gather_faults(step: Gather, length: int) -> Iterator[str]:
    if len(step.indices) != step.shape.size:
        yield f"{step.name}: it takes {len(step.indices)} elements where {step.shape.size} are made"
    elif min(step.indices) < NOTHING or max(step.indices) >= length:
        yield f"{step.name}: an element of {step.source} is outside 0 .. {length - 1}"


def range_faults(ring_bits: int, steps: Sequence[Step]) -> Iterator[str]:
    """List faults of a program's scales, ranges and truncations."""
    if not 1 <= ring_bits <= MAX_RING_BITS:
        yield f"the ring width is {ring_bits}, outside 1 .. {MAX_RING_BITS}"
    ranges = stated_ranges(steps)
    for step in steps:
        if isinstance(step, Relu | Square | Truncate):
            yield from _truncation_faults(step, ranges.get(step.source, 0), ring_bits)
        elif isinstance(step, Linear | Combine):
            yield from _affine_faults(step, ring_bits)
        elif isinstance(step, Curve):
            yield f"{step.name}: a smooth function was not approximated"


def stated_ranges(steps: Sequence[Step]) -> dict[str, int]:
    """Bits of every tensor that has a range: those of linear maps and sums, and what a truncation leaves of them."""
    ranges: dict[str, int] = {}
    for step in steps:
        if isinstance(step, Linear | Combine):
            ranges[step.name] = step.range_bits
        elif isinstance(step, Truncate):
            ranges[step.name] = ranges.get(step.source, 0) - step.truncate
    return {name: bits for name, bits in ranges.items() if bits > 0}


def _truncation_faults(step: Compared, range_bits: int, ring_bits: int) -> Iterator[str]:
    if range_bits < 1:
        yield f"{step.name}: it reads {step.source}, which has no range"
    elif isinstance(step, Square):
        if min(step.truncate_before, step.truncate_after) < 0:
            yield f"{step.name}: it truncates a negative number of bits"
    elif not (1 if isinstance(step, Truncate) else 0) <= step.truncate < range_bits:
        yield f"{step.name}: it truncates {step.truncate} of {range_bits} bits"
    elif isinstance(step, Truncate) and range_bits >= ring_bits:
        yield f"{step.name}: a range of {range_bits} bits is truncated in a wider ring only, not in {ring_bits} bits"


def _affine_faults(step: Affine, ring_bits: int) -> Iterator[str]:
    if abs(step.scale) > MAX_SCALE:
        yield f"{step.name}: its scale of {step.scale} is beyond {MAX_SCALE}"
    elif not 0 <= step.range_bits <= ring_bits:
        yield f"{step.name}: its range of {step.range_bits} bits does not fit the ring of {ring_bits} bits"
    elif isinstance(step, Combine) and step.constants and max(map(abs, step.constants)) >> (MAX_RING_BITS - 1):
        yield f"{step.name}: a constant does not fit {MAX_RING_BITS} bits"
