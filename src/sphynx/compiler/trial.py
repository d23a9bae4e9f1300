"""An integer program on the calibration images, step by step as it is made; the bits that its numbers need.

Linear maps are computed by the compiled core, several times sooner than in numpy, to the numbers of interpret.py: a map
is computed modulo 2^32 where no output can reach 2^31. Weights that would let one do so are cut in two, whose sums are
added in 64 bits. Whatever still goes beyond is left to interpret.py, which also finds out what 64 bits do not hold.

The largest number that a step makes says the range of its tensor; the ring holds the widest of these.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from math import floor

import numpy as np

from sphynx.compiler.side_by_side import Map
from sphynx.core.ring import RingConv
from sphynx.errors import SphynxError
from sphynx.program.convolve import EXACT_INTEGER, Array, l1_norm, magnitude
from sphynx.program.cost.cost import conv_shape
from sphynx.program.cost.widths import compared_tensors
from sphynx.program.interpret import Weights, apply_step, images_at_once, joined_outputs, last_uses
from sphynx.program.ir import INPUT, MAX_RING_BITS, Combine, Graph, Linear, Relu, Square, Step, Truncate
from sphynx.space.tally import Shape

HEADROOM_BITS = 2
REMEDY = "Compile with fewer `activation_bits` or `weight_bits`."

_WORD_BITS = 32
_HALF = 1 << (_WORD_BITS - 1)
_LOW_BITS = 7  # of weights of up to 16 bits: then those above have as many or two more

Apply = Callable[[Mapping[str, Array]], Array]  # the tensor that a step makes of those of some images


class Trial:
    """The tensors that are still read, each as parts of some images, in as few bytes as hold them."""

    def __init__(self, graph: Graph, pixels: Array, mapped: Map) -> None:
        size = images_at_once(graph)
        self.largest = {INPUT: magnitude(pixels)}  # of each tensor
        self._graph, self._mapped = graph, mapped
        self._tensors = {INPUT: [pixels[first : first + size] for first in range(0, len(pixels), size)]}
        self._last_use, self._done = last_uses(graph), 0

    def make(self, step: Step, weights: Weights) -> list[Array]:
        """The tensor that a step makes, int64 or less. OverflowError where it might not fit 64 bits."""
        sources = {name: self._tensors[name] for name in step.sources}
        inputs = [dict(zip(sources, parts, strict=True)) for parts in zip(*sources.values(), strict=True)]
        apply = linear_map(step, inputs, weights, self.largest) if isinstance(step, Linear) else _widely(step, weights)
        return list(self._mapped(apply, inputs))

    def keep(self, step: Step, made: list[Array], moved: Array | None = None) -> None:
        """Keep the step's tensor, with `moved` added to its channels, for those to come that read it; drop what none
        of them reads."""
        kept, sizes = zip(*self._mapped(partial(_narrowed, moved=moved), made), strict=True)
        self._tensors[step.name], self.largest[step.name] = list(kept), max(sizes)
        for source in set(step.sources):
            if self._last_use[source] == self._done:
                del self._tensors[source]
        self._done += 1

    def outputs(self) -> Array:
        """All outputs, one behind the other."""
        tensors = {name: np.concatenate(self._tensors[name]).astype(np.int64) for name in self._graph.output_names}
        return joined_outputs(self._graph, tensors)


def _widely(step: Step, weights: Weights) -> Apply:
    """Apply a step in 64 bits."""

    def apply(tensors: Mapping[str, Array]) -> Array:
        return apply_step(step, {name: tensor.astype(np.int64) for name, tensor in tensors.items()}, weights)

    return apply


def _narrowed(part: Array, moved: Array | None) -> tuple[Array, int]:
    """The part, with this added to its channels, and the largest number in it."""
    part = part if moved is None else part + moved[:, None, None]
    largest = magnitude(part)
    return (part.astype(np.int32, copy=False) if largest < _HALF else part), largest


def linear_map(step: Linear, inputs: list[dict[str, Array]], weights: Weights, largest: Mapping[str, int]) -> Apply:
    """Return what makes of each input the tensor that `apply_step` makes, OverflowError where it might not fit 64 bits.
    `largest` is the magnitude of each tensor."""
    parts: list[tuple[str, int, RingConv]] = []  # what each reads, the shift of its sums, the map
    bound = magnitude(weights[step.bias_name])
    for number, term in enumerate(step.terms):
        xs, kernel = [part[term.source] for part in inputs], weights[step.weight_name(number)].astype(np.int32)
        shape = conv_shape(term, Shape(*xs[0].shape[1:]), step.shape)
        pieces = _pieces(kernel, xs, largest[term.source]) if term.groups == 1 else None
        if pieces is None:
            return _widely(step, weights)
        for piece, shift, reach in pieces:
            parts.append((term.source, term.shift + shift, RingConv(shape, _WORD_BITS, piece)))
            bound += reach << (term.shift + shift)
    if bound >= EXACT_INTEGER:
        return _widely(step, weights)
    return partial(_convolved, parts, weights[step.bias_name])


def _convolved(parts: list[tuple[str, int, RingConv]], bias: Array, tensors: Mapping[str, Array]) -> Array:
    images = len(tensors[parts[0][0]])
    total = np.empty((images, *bias.shape), np.int64)
    for image, made in zip(range(images), total, strict=True):
        before = bias
        for source, shift, convolution in parts:
            words = convolution(_words(tensors[source][image]), threads=1).view(np.int32)
            before = np.add(before, words.astype(np.int64) << shift if shift else words, out=made)
    return total


def _words(image: Array) -> Array:
    return image.view(np.uint32) if image.dtype == np.int32 else image.astype(np.uint32)


def _pieces(kernel: Array, xs: list[Array], largest: int) -> list[tuple[Array, int, int]] | None:
    """The kernel as a sum of shifted ones, each with the most that its sums can reach, all below 2^31."""
    simple = largest * l1_norm(kernel)
    if simple < _HALF:
        return [(kernel, 0, simple)]
    # 0 is what lies beyond the borders
    lows = np.min([x.min(axis=(2, 3)).min(axis=0, initial=0) for x in xs], axis=0).astype(np.float64)
    highs = np.max([x.max(axis=(2, 3)).max(axis=0, initial=0) for x in xs], axis=0).astype(np.float64)
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


def bits_for(largest: float) -> int:
    """Bits of an unsigned integer as large as this."""
    return max(0, floor(largest)).bit_length()


def range_bits(largest: float) -> int:
    """Bits for values up to `largest`, with the sign and the headroom."""
    return bits_for(largest) + 1 + HEADROOM_BITS


def with_ranges(graph: Graph, steps: tuple[Step, ...], largest: dict[str, int]) -> tuple[Step, ...]:
    truncations = {step.source: step.truncate for step in steps if isinstance(step, Relu | Truncate)}
    compared = compared_tensors(graph)
    ranged: list[Step] = []
    for step in steps:
        if isinstance(step, Linear | Combine) and step.name in compared:
            # The sign takes a bit; a truncation leaves at least one.
            bits = max(range_bits(largest[step.name]), truncations.get(step.name, 0) + 1)
            if bits > MAX_RING_BITS:
                raise SphynxError(f"it needs {bits} bits, more than any ring has", where=step.name, remedy=REMEDY)
            step = replace(step, range_bits=bits)
        ranged.append(step)
    return tuple(ranged)


def ring_bits(steps: tuple[Step, ...]) -> int:
    """A signed truncation takes a bit beyond its range, a square twice what it leaves of it."""
    ranges = {step.name: step.range_bits for step in steps if isinstance(step, Linear | Combine)}
    needed = list(ranges.values())
    for step in steps:
        if isinstance(step, Truncate) or (isinstance(step, Square) and step.truncate_before):
            needed.append(ranges[step.source] + 1)
        if isinstance(step, Square):
            needed.append(2 * (ranges[step.source] - step.truncate_before))
    return max(needed, default=0)
