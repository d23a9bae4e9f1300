"""Integer linear maps on calibration images by the compiled core, several times sooner than in numpy.

The numbers are those of interpret.py: a map is computed modulo 2^32 where no output can reach 2^31. Weights that would
let one do so are cut in two, whose sums are added in 64 bits. Whatever still goes beyond is left to interpret.py, which
also finds out what 64 bits do not hold.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from sphynx.core.ring import RingConv
from sphynx.program.convolve import EXACT_INTEGER, Array, l1_norm, magnitude
from sphynx.program.cost.cost import conv_shape
from sphynx.program.interpret import Weights, apply_step
from sphynx.program.ir import Linear
from sphynx.space.tally import Shape

RING_BITS = 32
_HALF = 1 << (RING_BITS - 1)
_LOW_BITS = 7  # of weights of up to 16 bits: then those above have as many or two more


def apply_linear(step: Linear, tensors: Mapping[str, Array], weights: Weights, largest: Mapping[str, int]) -> Array:
    """The tensor that `apply_step` makes. OverflowError where it might not fit 64 bits.

    `largest` is the magnitude of each tensor."""
    parts: list[tuple[str, int, RingConv]] = []  # what each reads, the shift of its sums, the map
    bound = magnitude(weights[step.bias_name])
    for number, term in enumerate(step.terms):
        x, kernel = tensors[term.source], weights[step.weight_name(number)].astype(np.int32)
        shape = conv_shape(term, Shape(*x.shape[1:]), step.shape)
        pieces = _pieces(kernel, x, largest[term.source]) if term.groups == 1 else None
        if pieces is None:
            return apply_step(step, tensors, weights)
        for piece, shift, reach in pieces:
            parts.append((term.source, term.shift + shift, RingConv(shape, RING_BITS, piece)))
            bound += reach << (term.shift + shift)
    if bound >= EXACT_INTEGER:
        return apply_step(step, tensors, weights)
    images = len(tensors[step.terms[0].source])
    total = np.empty((images, *step.shape), np.int64)
    for image, made in zip(range(images), total, strict=True):
        before = weights[step.bias_name]
        for source, shift, convolution in parts:
            words = convolution(tensors[source][image].astype(np.uint32)).view(np.int32)
            before = np.add(before, words.astype(np.int64) << shift if shift else words, out=made)
    return total


def _pieces(kernel: Array, x: Array, largest: int) -> list[tuple[Array, int, int]] | None:
    """The kernel as a sum of shifted ones, each with the most that its sums can reach, all below 2^31."""
    simple = largest * l1_norm(kernel)
    if simple < _HALF:
        return [(kernel, 0, simple)]
    lows = x.min(axis=(2, 3)).min(axis=0, initial=0).astype(np.float64)  # 0 is what lies beyond the borders
    highs = x.max(axis=(2, 3)).max(axis=0, initial=0).astype(np.float64)
    whole = _reach(kernel, lows, highs)
    if whole < _HALF:
        return [(kernel, 0, whole)]
    above = (kernel + (1 << (_LOW_BITS - 1))) >> _LOW_BITS
    below = kernel - (above << _LOW_BITS)
    pieces = [(below, 0, _reach(below, lows, highs)), (above, _LOW_BITS, _reach(above, lows, highs))]
    return pieces if all(reach < _HALF for _, _, reach in pieces) else None


def _reach(kernel: Array, lows: Array, highs: Array) -> int:
    """The largest magnitude of a sum, and of any part of it, with each channel of the input between two numbers.

    Doubles do: what they add up is never negative, so all of it is exact where the sum is below 2^53.
    """
    positive = np.maximum(kernel, 0).sum(axis=(2, 3), dtype=np.float64)
    negative = np.minimum(kernel, 0).sum(axis=(2, 3), dtype=np.float64)
    most = positive @ highs + negative @ lows
    least = positive @ lows + negative @ highs
    return int(max(most.max(), -least.min()))
