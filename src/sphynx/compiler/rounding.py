"""A fused network's real numbers as the integer weights of its program.

The program says at which scales; `corrections` are what each bias takes up, per linear map and channel, which is all
that calibration decided beside the program (quantise.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import frexp

import numpy as np

from sphynx.compiler.fusion.affine import Floats
from sphynx.compiler.fusion.fuse import Fused
from sphynx.program.convolve import Array
from sphynx.program.ir import Linear, Program

FACTOR_BITS = 16  # in a hard swish two sums nearly cancel: at 12 bits its sixth would be off by a thousandth


def integer_weights(fused: Fused, program: Program, corrections: Mapping[str, Array]) -> dict[str, Array]:
    """Make the weights that `quantise` made of the same fused network, when it made the program and the corrections."""
    weights: dict[str, Array] = {}
    for step in program.linears:
        weights.update(rounded(step, fused.weights, program.weight_bits))
        weights[step.bias_name] = corrected(weights[step.bias_name], corrections[step.name])
    return weights


def rounded(step: Linear, real: Mapping[str, Floats], weight_bits: int) -> dict[str, Array]:
    """The weights and the bias map of one linear map at its scales, before the bias is corrected."""
    kind = np.int8 if weight_bits <= 8 else np.int16
    weights: dict[str, Array] = {}
    for number, term in enumerate(step.terms):
        name = step.weight_name(number)
        weights[name] = np.rint(real[name] * 2.0**term.weight_scale).astype(kind)
    weights[step.bias_name] = np.rint(real[step.bias_name] * 2.0**step.scale).astype(np.int64)
    return weights


def rounded_factors(real: Floats) -> tuple[tuple[int, ...], int]:
    """Round the factors of a public sum: integers of FACTOR_BITS, or fewer where those are exact, and their scale."""
    scale = FACTOR_BITS - frexp(float(np.abs(real).max()))[1]
    factors = [int(factor) for factor in np.rint(np.ldexp(real, scale)).tolist()]
    while any(factors) and not any(factor & 1 for factor in factors):
        factors, scale = [factor // 2 for factor in factors], scale - 1
    return tuple(factors), scale


def corrected(maps: Array, correction: Array) -> Array:
    """A bias map, or maps, with so much added to each channel."""
    moved: Array = maps + correction[:, None, None]
    return moved
