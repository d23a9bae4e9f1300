"""Fixed point: the fused network's real numbers become a program of integers.

Calibration images tell how large every tensor gets. Then, map by map in the order of evaluation:
- each term's weights are rounded at the finest power of two that keeps them within `weight_bits`; a term whose rounding
  would disturb the sum far less than another's is rounded more coarsely, so that it does not widen the ring in vain;
- terms are shifted left to the finest scale among them, the bias map is rounded at that scale;
- the outputs' weights are rounded more coarsely where only the outputs would widen the ring;
- a ReLU or a signed truncation leaves `activation_bits`, rounding to the nearest by half a unit in the bias, or the
  constants of a sum, before it; outputs, the links of a chain and the comparisons of a max pool are not truncated;
- the summands of a public sum are shifted left to the finest scale among them, and its factors rounded to 16 bits;
- the integer program runs on the calibration images as far as this map, and the bias takes up the mean error of each
  channel (Nagel et al. 2019): pixels and activations are positive, so rounded weights would shift every sum.
The program says all of that but the last: `corrections` are what the biases took up, and with them and the program the
integer weights follow from the fused network (derive.py).
Each range is the largest value seen and two bits more, and the ring is as wide as the widest range.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import floor, frexp, log2, sqrt

import numpy as np

from sphynx.compiler.fusion.affine import Floats
from sphynx.compiler.fusion.approximate import Approximation
from sphynx.compiler.fusion.fuse import Fused
from sphynx.compiler.measure import Measured, Size, call_bytes
from sphynx.compiler.precision import Precision
from sphynx.compiler.side_by_side import side_by_side
from sphynx.compiler.trial import HEADROOM_BITS, REMEDY, Trial, bits_for, range_bits, ring_bits, with_ranges
from sphynx.errors import InputError, SphynxError
from sphynx.program.convolve import Array
from sphynx.program.cost.widths import LEAST_LOGIT_BITS, compared_tensors
from sphynx.program.inputs import PICTURE, Input
from sphynx.program.ir import (
    INPUT,
    MAX_RING_BITS,
    MAX_SCALE,
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
    Summand,
    Truncate,
)
from sphynx.run.update import Listener, Update, ignore

FACTOR_BITS = 16  # in a hard swish two sums nearly cancel: at 12 bits its sixth would be off by a thousandth
SQUARE_GUARD_BITS = 3
VANISHING_BITS = 10  # rounding noise this many bits below the last one of what a map makes can never be seen
NEGLIGIBLE_BITS = 2  # rounding noise this many bits below the largest term's does no harm


@dataclass(frozen=True, eq=False)
class Quantised:
    program: Program
    weights: dict[str, Array]
    corrections: dict[str, Array]  # per linear map and channel: what its bias took up, and is in the weights already
    logit_error: float  # on the calibration images, by rounding alone, of the worst output: see `relative_error`
    logits: Array  # [n, numbers], of all outputs for the calibration images, as the program gives them
    float_logits: Array  # and before rounding and approximation
    precision: Precision
    approximations: tuple[Approximation, ...] = ()  # of smooth functions
    approximation_error: float = 0.0  # of the outputs, by those alone


def quantise(
    measured: Measured,
    precision: Precision = Precision(),
    *,
    source: Input = PICTURE,
    name: str = "",
    made_from: str = "",
    narrow_logits: bool = True,
    progress: Listener = ignore,
) -> Quantised:
    """`narrow_logits` rounds the outputs' weights more coarsely where only the outputs would widen the ring."""
    graph = measured.fused.graph
    quantiser = _Quantiser(measured.fused, measured.sizes, precision, narrow_logits)
    steps, largest, integer_logits = _quantise_steps(graph, quantiser, measured.pixels, progress)
    steps = with_ranges(graph, steps, largest)
    program = Program(
        graph.image,
        steps,
        max(ring_bits(steps), source.bits),
        precision.weight_bits,
        source,
        name,
        made_from,
        outputs=graph.outputs,
    )
    logits = program.real_numbers(integer_logits)
    error = largest_error(program, logits, measured.logits)
    return Quantised(program, quantiser.weights, quantiser.corrections, error, logits, measured.logits, precision)


def relative_error(found: Array, wanted: Array) -> float:
    """The error of an output: root mean square, over that of the wanted ones around their mean."""
    spread = float(np.std(wanted - wanted.mean(axis=0)))
    return sqrt(float(np.square(found - wanted).mean())) / spread if spread else 0.0


def largest_error(graph: Graph, found: Array, wanted: Array) -> float:
    """The error of the output that is farthest off, of [n, numbers] each."""
    pairs = zip(graph.split(found).values(), graph.split(wanted).values(), strict=True)
    return max(relative_error(one, other) for one, other in pairs)


class _Quantiser:
    def __init__(self, fused: Fused, sizes: dict[str, Size], precision: Precision, narrow_logits: bool) -> None:
        self.fused, self.sizes, self.precision, self.narrow_logits = fused, sizes, precision, narrow_logits
        self.graph = fused.graph
        self.links = fused.graph.links - compared_tensors(fused.graph)
        self.truncating: dict[str, list[Relu | Truncate]] = {}  # by what they read
        for step in fused.graph.steps:
            if isinstance(step, Truncate) or (isinstance(step, Relu) and not step.comparison):
                self.truncating.setdefault(step.source, []).append(step)
        self.scales = {INPUT: 0}
        self.weights: dict[str, Array] = {}
        self.corrections: dict[str, Array] = {}
        read = {name for step in fused.graph.steps for name in step.sources}
        self.last = {*fused.graph.output_names} - read  # outputs that nothing else reads
        self.ring_bits = 0  # that all steps but the maps of these need

    def step(self, step: Step) -> Step:
        if isinstance(step, Linear):
            return self.linear(step)
        if isinstance(step, Combine):
            return self.combine(step)
        scale = self.scales[step.source]
        if isinstance(step, Pool | Gather):
            self.scales[step.name] = scale
            return step
        if isinstance(step, Gate):
            self.scales[step.name] = scale + self.scales[step.gate]
            return step
        if isinstance(step, Square):
            return self.square(step)
        if isinstance(step, Curve):
            raise InputError("a smooth function was not approximated", where=step.name, remedy="Use ReLU.")
        if isinstance(step, Relu) and step.comparison:
            self.scales[step.name] = scale
            return step
        truncate = self._truncation(step.source)
        self.scales[step.name] = scale - truncate
        if isinstance(step, Truncate) and not truncate:  # then it is a public copy
            return Combine(step.name, (Summand(step.source),), self.graph.shapes[step.name], scale)
        return replace(step, truncate=truncate)

    def combine(self, step: Combine) -> Combine:
        finest = max(self.scales[name] for name in step.sources)
        summands = tuple(replace(s, shift=finest - self.scales[s.source]) for s in step.summands)
        if max(s.shift for s in summands) >= MAX_RING_BITS:
            raise SphynxError("its summands differ too much in scale", where=step.name, remedy=REMEDY)
        factors, factor_scale = rounded_factors(self.fused.weights[step.factors_name]) if step.factors else ((), 0)
        scale = self.scales[step.name] = finest + factor_scale
        half, unit = self._half(step), 1 << self._truncation(step.name)
        constants = (half,) * step.shape.channels if half else ()
        if step.constants:
            # Whole units of what a truncation leaves: then the constant moves the rounded value by exactly as much.
            real = np.ldexp(self.fused.weights[step.constants_name], scale)
            if bits_for(float(np.abs(real).max())) >= MAX_RING_BITS - HEADROOM_BITS:
                raise SphynxError("its constants do not fit the widest ring", where=step.name, remedy=REMEDY)
            constants = tuple(half + unit * round(number / unit) for number in real.tolist())
        return replace(step, summands=summands, scale=scale, constants=constants, factors=factors)

    def square(self, step: Square) -> Square:
        """Quantise a square: it reads as many bits as an activation has and leaves a few more, as a part of a sum."""
        scale, kept = self.scales[step.source], self.precision.activation_bits
        before = max(0, bits_for(self.sizes[step.source].largest * 2.0**scale) - kept)
        scale = 2 * (scale - before)
        after = max(0, bits_for(self.sizes[step.name].largest * 2.0**scale) - kept - SQUARE_GUARD_BITS)
        self.scales[step.name] = scale - after
        return replace(step, truncate_before=before, truncate_after=after)

    def correct(self, step: Linear, made: list[Array]) -> Array:
        """Find what moves the mean of each channel to where real numbers have it; the bias takes it up."""
        wanted = self.sizes[step.name].channel_means * 2.0 ** self.scales[step.name]
        sums = sum(part.sum(axis=(2, 3)).sum(axis=0, dtype=np.float64) for part in made)
        means = sums / (sum(part.size for part in made) // step.shape.channels)
        moved: Array = np.rint(wanted + self._half(step) - means).astype(np.int64)
        self.corrections[step.name] = moved
        self.weights[step.bias_name] = corrected(self.weights[step.bias_name], moved)
        return moved

    def _truncation(self, source: str) -> int:
        """How many bits the nonlinearities that read this tensor drop: all of them as many."""
        readers = self.truncating.get(source, [])
        # A map that no calibration image makes positive is measured by its negative values.
        largest = max((self._largest(reader) for reader in readers), default=0.0) or self.sizes[source].largest
        bits = bits_for(largest * 2.0 ** self.scales[source]) - self.precision.activation_bits
        return max(0, bits) if readers else 0

    def _largest(self, step: Relu | Truncate) -> float:
        """The largest value that matters: for ReLUs that only differences read, as in a clip, that of the
        difference."""
        readers = [other for other in self.graph.steps if step.name in other.sources]
        if isinstance(step, Relu) and readers and all(self._subtracts(reader, step.name) for reader in readers):
            return max(self.sizes[reader.name].largest for reader in readers)
        return self._visible_size(step.name)

    def _visible_size_of_map(self, step: Linear) -> float:
        """The size of a map, by what it makes and what a nonlinearity makes of that."""
        return max(
            self._visible_size(name) for name in (step.name, *(r.name for r in self.truncating.get(step.name, [])))
        )

    def _visible_size(self, name: str) -> float:
        """How large a tensor is, or, if only sums read it in which it would vanish, what can be seen in these."""
        readers = [step for step in self.graph.steps if name in step.sources]
        own = self.sizes[name].largest
        if not readers or not all(isinstance(reader, Combine) and not reader.factors for reader in readers):
            return own
        unit = 2.0**-self.precision.activation_bits
        return max(own, *(unit * self.sizes[reader.name].largest for reader in readers))

    def _subtracts(self, step: Step, source: str) -> bool:
        if not isinstance(step, Combine):
            return False
        factors = self.fused.weights[step.factors_name] if step.factors else np.ones(len(step.summands))
        pairs = zip(step.summands, factors.tolist(), strict=True)
        return len({s.negative ^ (factor < 0) for s, factor in pairs if s.source == source}) == 2

    def _half(self, step: Affine) -> int:
        """The constant that makes rounding down round to the nearest, for a map that a truncation follows."""
        truncate = self._truncation(step.name)
        return 1 << (truncate - 1) if truncate else 0

    def linear(self, step: Linear) -> Linear:
        arrays = [self.fused.weights[step.weight_name(number)] for number in range(len(step.terms))]
        weight_scales = self._weight_scales(step, arrays)
        scale = self._sum_scale(step, weight_scales)
        if self.narrow_logits and step.name in self.last and self.ring_bits:
            beyond = range_bits(self.sizes[step.name].largest * 2.0**scale) - self.ring_bits
            coarser = max(0, min(beyond, self.precision.weight_bits - LEAST_LOGIT_BITS))
            weight_scales = [None if found is None else found - coarser for found in weight_scales]
            scale = self._sum_scale(step, weight_scales)
        terms = []
        for term, weight_scale in zip(step.terms, weight_scales, strict=True):
            source_scale = self.scales[term.source]
            exponent = scale - source_scale if weight_scale is None else weight_scale
            terms.append(replace(term, shift=scale - source_scale - exponent, weight_scale=exponent))
        if max(abs(scale), *(abs(term.weight_scale) for term in terms)) > MAX_SCALE:
            raise _beyond_doubles(step)
        largest_bias = float(np.abs(self.fused.weights[step.bias_name]).max()) * 2.0**scale
        if bits_for(largest_bias) >= MAX_RING_BITS - HEADROOM_BITS:
            raise SphynxError("its bias does not fit the widest ring", where=step.name, remedy=REMEDY)
        scaled = replace(step, terms=tuple(terms), scale=scale)
        self.weights.update(rounded(scaled, self.fused.weights, self.precision.weight_bits))
        self.scales[step.name] = scale
        return scaled

    def _sum_scale(self, step: Linear, weight_scales: list[int | None]) -> int:
        """The finest among the terms; of a map without weights, which is its bias, that of an activation."""
        pairs = zip(step.terms, weight_scales, strict=True)
        found = [self.scales[term.source] + scale for term, scale in pairs if scale is not None]
        largest = self._visible_size_of_map(step)
        return max(found, default=self.precision.activation_bits - frexp(largest)[1] if largest else 0)

    def _weight_scales(self, step: Linear, arrays: list[Array]) -> list[int | None]:
        """Per term; None where all weights are zero."""
        bits = self.precision.weight_bits
        if step.name in self.links:
            bits = min(bits, self.precision.link_bits)
        top = (1 << (bits - 1)) - 1
        finest: list[int | None] = []
        noises: list[float] = []  # of the sum, from rounding this term's weights, as a power of two
        for term, array in zip(step.terms, arrays, strict=True):
            largest = float(np.abs(array).max())
            if 0 < largest < 2.0**-MAX_SCALE:
                raise _beyond_doubles(step)  # their scale could be no finite number
            finest.append(floor(log2(top / largest)) if largest > 0 else None)
            inputs = np.count_nonzero(array) / len(array)
            noise = self.sizes[term.source].rms * sqrt(inputs)
            noises.append(log2(noise) - (finest[-1] or 0) if largest > 0 and noise > 0 else -np.inf)
        # Weights may be tiny beside a bias, or beside what the map is added to: their own bits would widen the ring.
        shown, most = self._visible_size_of_map(step), max(bits, self.precision.activation_bits) + VANISHING_BITS
        harmless = max(max(noises) - NEGLIGIBLE_BITS, log2(shown) - most if shown else -np.inf)
        return [
            scale if scale is None or noise == -np.inf else scale - max(0, floor(harmless - noise))
            for scale, noise in zip(finest, noises, strict=True)
        ]


def _beyond_doubles(step: Linear) -> InputError:
    return InputError(
        f"at any precision its numbers lie beyond 2^{MAX_SCALE} or below 2^-{MAX_SCALE}",
        where=step.name,
        remedy="Train the network again: its weights vanish or explode.",
    )


def rounded(step: Linear, real: Mapping[str, Floats], weight_bits: int) -> dict[str, Array]:
    """The weights and the bias map of one linear map at its scales, before the bias is corrected."""
    kind = np.int8 if weight_bits <= 8 else np.int16
    weights: dict[str, Array] = {}
    for number, term in enumerate(step.terms):
        name = step.weight_name(number)
        weights[name] = np.rint(real[name] * 2.0**term.weight_scale).astype(kind)
    weights[step.bias_name] = np.rint(real[step.bias_name] * 2.0**step.scale).astype(np.int64)
    return weights


def corrected(bias: Array, correction: Array) -> Array:
    """A bias map with so much added to each channel."""
    moved: Array = bias + correction[:, None, None]
    return moved


def rounded_factors(real: Floats) -> tuple[tuple[int, ...], int]:
    """Round the factors of a public sum: integers of FACTOR_BITS, or fewer where those are exact, and their scale."""
    scale = FACTOR_BITS - frexp(float(np.abs(real).max()))[1]
    factors = [int(factor) for factor in np.rint(np.ldexp(real, scale)).tolist()]
    while any(factors) and not any(factor & 1 for factor in factors):
        factors, scale = [factor // 2 for factor in factors], scale - 1
    return tuple(factors), scale


def _quantise_steps(
    graph: Graph, quantiser: _Quantiser, pixels: Array, progress: Listener
) -> tuple[tuple[Step, ...], dict[str, int], Array]:
    """The integer steps, each run on the calibration images; the largest value that each made; the outputs."""
    steps: list[Step] = []
    stage = f"trying weights of {quantiser.precision.weight_bits} bits on {len(pixels)} inputs"
    with side_by_side(call_bytes(graph)) as mapped:
        trial = Trial(graph, pixels, mapped)
        for number, original in enumerate(graph.steps):
            progress(Update(stage, number, len(graph.steps)))
            if original.name in quantiser.last:
                others = tuple(step for step in steps if step.name not in quantiser.last)
                quantiser.ring_bits = ring_bits(with_ranges(graph, others, trial.largest))
            step = quantiser.step(original)
            try:
                made = trial.make(step, quantiser.weights)
            except OverflowError:
                raise SphynxError("its numbers do not fit 64 bits", where=step.name, remedy=REMEDY) from None
            trial.keep(step, made, quantiser.correct(step, made) if isinstance(step, Linear) else None)
            steps.append(step)
        return tuple(steps), trial.largest, trial.outputs()
