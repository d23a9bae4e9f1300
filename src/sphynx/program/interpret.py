"""Evaluates a program in plain integers, batch-wise: the oracle that the private result equals bit for bit. No torch.

A tensor that leaves the range that its step states raises an error with the step's name: online, inside the ring, the
same overflow would pass unseen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from sphynx.errors import InputError, SphynxError
from sphynx.program.combine import check_sum, combined, gathered
from sphynx.program.convolve import EXACT_INTEGER, Array, convolve, l1_norm, magnitude
from sphynx.program.curves import CURVES
from sphynx.program.ir import (
    INPUT,
    Affine,
    Combine,
    Curve,
    Gate,
    Gather,
    Graph,
    Linear,
    Pool,
    Program,
    Relu,
    Square,
    Step,
    Truncate,
)

Weights = Mapping[str, Array]
Watch = Callable[[Step, Array], None]
Apply = Callable[[Step, Mapping[str, Array], Weights], Array]
BATCH = 64
_TENSOR_BYTES = 1 << 23  # of one tensor of a batch, so that it stays near the processor


def interpret(program: Program, weights: Weights, pixels: Array, watch: Watch | None = None) -> Array:
    """Integers [n, channels, height, width], as the program's input says, to those of all outputs, one behind the
    other: int64 [n, numbers]. `watch` sees every tensor, per batch."""
    require_images(program, pixels)

    def checked(step: Step, tensor: Array) -> None:
        if isinstance(step, Linear | Combine) and step.range_bits:
            check_range(step, tensor)
        if watch is not None:
            watch(step, tensor)

    size = images_at_once(program)
    batches = [
        evaluate(program, weights, pixels[start : start + size].astype(np.int64), checked)
        for start in range(0, len(pixels), size)
    ]
    return np.concatenate(batches) if batches else np.zeros((0, program.output_size), np.int64)


def images_at_once(graph: Graph) -> int:
    """How many images a batch has."""
    return max(1, min(BATCH, _TENSOR_BYTES // (8 * max(shape.size for shape in graph.shapes.values()))))


def evaluate(graph: Graph, weights: Weights, pixels: Array, watch: Watch, apply: Apply | None = None) -> Array:
    """One batch, in the numbers that it comes in: int64, or float64 for a graph that is not quantised. All outputs, one
    behind the other: [n, numbers]. `apply` makes a step's tensor as `apply_step` does."""
    last_use = last_uses(graph)
    tensors = {INPUT: pixels}
    for number, step in enumerate(graph.steps):
        try:
            tensors[step.name] = (apply or apply_step)(step, tensors, weights)
        except OverflowError:
            raise SphynxError(
                "its numbers do not fit 64 bits",
                where=step.name,
                remedy="Compile with fewer `weight_bits` or `activation_bits`.",
            ) from None
        watch(step, tensors[step.name])
        for source in set(step.sources):
            if last_use[source] == number:
                del tensors[source]
    return joined_outputs(graph, tensors)


def last_uses(graph: Graph) -> dict[str, int]:
    """Map each tensor that is read to the number of the step that reads it last; outputs are kept to the end."""
    uses = {source: number for number, step in enumerate(graph.steps) for source in step.sources}
    return {**uses, **dict.fromkeys(graph.output_names, len(graph.steps))}


def joined_outputs(graph: Graph, tensors: Mapping[str, Array]) -> Array:
    """Lay all outputs out one behind the other, [n, numbers]."""
    flat = [tensors[output.source].reshape(len(tensors[output.source]), -1) for output in graph.outputs]
    return np.concatenate(flat, axis=1)


def check_range(step: Affine, tensor: Array) -> None:
    largest = magnitude(tensor)
    if largest >= 1 << (step.range_bits - 1):
        raise SphynxError(
            f"a value of {largest:,} is outside its range of {step.range_bits} bits",
            where=step.name,
            remedy="Compile with data that is more like this input: `calibrate=DATA`.",
        )


def apply_step(step: Step, tensors: Mapping[str, Array], weights: Weights) -> Array:
    """The tensor that one step makes. OverflowError where it might not fit 64 bits."""
    if isinstance(step, Linear):
        return _linear(step, tensors, weights)
    if isinstance(step, Combine):
        return _combine(step, tensors, weights)
    x = tensors[step.source]
    if isinstance(step, Pool):
        return _pool(step, x)
    if isinstance(step, Gather):
        return gathered(step, x)
    if isinstance(step, Truncate):
        return x >> step.truncate if step.truncate else x
    if isinstance(step, Relu):
        positive = np.maximum(x, 0)
        if step.truncate:
            positive >>= step.truncate
        return positive
    if isinstance(step, Gate):
        return _gate(x, tensors[step.gate])
    if isinstance(step, Curve):
        return CURVES[step.function](x)
    return _square(step, x)


def _linear(step: Linear, tensors: Mapping[str, Array], weights: Weights) -> Array:
    size = (step.shape.height, step.shape.width)
    bias = weights[step.bias_name]
    integers = np.issubdtype(bias.dtype, np.integer)
    total: Array | None = None
    bound = magnitude(bias) if integers else 0
    for number, term in enumerate(step.terms):
        source, kernel, reach = tensors[term.source], weights[step.weight_name(number)], None
        if integers:
            reach = magnitude(source) * l1_norm(kernel)
            bound += reach << term.shift
        part = convolve(source, kernel, term, size, reach)
        if bound >= EXACT_INTEGER:  # the bound goes too far, perhaps: look at the numbers
            before = bias if total is None else total
            if (magnitude(part) << term.shift) + magnitude(before) >= EXACT_INTEGER:
                raise OverflowError
        if term.shift:
            part <<= term.shift
        part += bias if total is None else total
        total = part
    assert total is not None  # a map has a term
    return total


def _combine(step: Combine, tensors: Mapping[str, Array], weights: Weights) -> Array:
    """Constants and factors that are real numbers lie among the weights, integers in the step."""
    if np.issubdtype(tensors[step.sources[0]].dtype, np.integer):
        check_sum(step, tensors)
        return combined(step, tensors, np.array(step.constants, np.int64) if step.constants else None)
    constants = weights[step.constants_name] if step.constants else None
    return combined(step, tensors, constants, weights[step.factors_name] if step.factors else None)


def _pool(step: Pool, x: Array) -> Array:
    if np.issubdtype(x.dtype, np.integer):
        growth = x.shape[2] * x.shape[3] * max(step.row_factors) * max(step.column_factors)
        if magnitude(x) * growth >= EXACT_INTEGER:
            raise OverflowError
    rows = np.stack(
        [f * x[:, :, a:b].sum(axis=2) for (a, b), f in zip(step.row_windows, step.row_factors, strict=True)], axis=2
    )
    return np.stack(
        [f * rows[..., a:b].sum(axis=3) for (a, b), f in zip(step.column_windows, step.column_factors, strict=True)],
        axis=3,
    )


def _square(step: Square, x: Array) -> Array:
    if not np.issubdtype(x.dtype, np.integer):
        return x * x
    short = x >> step.truncate_before
    if magnitude(short) ** 2 >= EXACT_INTEGER:
        raise OverflowError
    return (short * short) >> step.truncate_after


def _gate(x: Array, gate: Array) -> Array:
    if np.issubdtype(x.dtype, np.integer) and magnitude(x) * magnitude(gate) >= EXACT_INTEGER:
        raise OverflowError
    made: Array = x * gate
    return made


def require_images(program: Program, pixels: Array, count: int | None = None) -> None:
    """Refuse all but integers [n, channels, height, width] of the program's type and bits; n is `count` where given."""
    image, wanted = tuple(program.image), np.dtype(program.input.dtype)
    if pixels.dtype == wanted and pixels.ndim == 4 and pixels.shape[1:] == image and count in (None, len(pixels)):
        if pixels.size and int(pixels.max()) > program.input.largest:
            raise InputError(
                f"an integer is {int(pixels.max())}, beyond {program.input.largest}",
                where=program.name or "program",
                remedy=f"This program reads integers of {program.input.bits} bits.",
            )
        return
    missing = " The axis n is missing: images[None] adds it." if pixels.shape == image else ""
    raise InputError(
        f"the images are {pixels.dtype} of shape {list(pixels.shape)}",
        where=program.name or "program",
        remedy=f"This program reads {wanted} images [{count or 'n'}, {', '.join(map(str, image))}].{missing}",
    )
