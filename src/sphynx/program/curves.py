"""Smooth activation functions by name, in double precision: what a `Curve` computes until it is approximated.

Each is flat far to the left; there a piecewise-linear function that starts with a constant follows it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf as _erf
from math import pi, sqrt

import numpy as np

from sphynx.program.convolve import Array

_REACH, _STEP = 6.0, 1 / 1024  # beyond it erf is 1 in double precision
_NODES = np.arange(-_REACH, _REACH + _STEP / 2, _STEP)
_LEAST = 1e-12  # what a logarithm, a root or a reciprocal takes a smaller number for
_VALUES = np.array([_erf(x) for x in _NODES.tolist()])


def erf(x: Array) -> Array:
    """Hermite interpolation between exact values: within 1e-14 of the function."""
    inside = np.clip(x, -_REACH, _REACH)
    left = np.minimum(((inside + _REACH) / _STEP).astype(np.int64), len(_NODES) - 2)
    t = (inside - _NODES[left]) / _STEP
    slopes = 2 / sqrt(pi) * _STEP * np.exp(-np.square(_NODES))
    first, second = _VALUES[left], _VALUES[left + 1]
    made: Array = first + t * (
        slopes[left]
        + t * (3 * (second - first) - 2 * slopes[left] - slopes[left + 1])
        + t * t * (2 * (first - second) + slopes[left] + slopes[left + 1])
    )
    return made


def sigmoid(x: Array) -> Array:
    made: Array = 0.5 + 0.5 * np.tanh(0.5 * x)
    return made


def softplus(x: Array) -> Array:
    made: Array = np.logaddexp(x, 0.0)
    return made


def silu(x: Array) -> Array:
    return x * sigmoid(x)


def hard_swish(x: Array) -> Array:
    made: Array = x * np.clip(x / 6 + 0.5, 0, 1)
    return made


def gelu(x: Array) -> Array:
    made: Array = 0.5 * x * (1 + erf(x / sqrt(2)))
    return made


def gelu_tanh(x: Array) -> Array:
    made: Array = 0.5 * x * (1 + np.tanh(sqrt(2 / pi) * (x + 0.044715 * x**3)))
    return made


def mish(x: Array) -> Array:
    made: Array = x * np.tanh(softplus(x))
    return made


def elu(x: Array) -> Array:
    made: Array = np.where(x > 0, x, np.expm1(np.minimum(x, 0)))
    return made


def square_root(x: Array) -> Array:
    made: Array = np.sqrt(np.maximum(x, 0))
    return made


def inverse_root(x: Array) -> Array:
    made: Array = 1 / np.sqrt(np.maximum(x, _LEAST))
    return made


def reciprocal(x: Array) -> Array:
    made: Array = 1 / np.where(np.abs(x) < _LEAST, _LEAST, x)
    return made


def log(x: Array) -> Array:
    made: Array = np.log(np.maximum(x, _LEAST))
    return made


CURVES: dict[str, Callable[[Array], Array]] = {
    "sigmoid": sigmoid,
    "tanh": np.tanh,
    "silu": silu,
    "hard_swish": hard_swish,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "mish": mish,
    "softplus": softplus,
    "elu": elu,
    "exp": np.exp,
    "log": log,
    "sqrt": square_root,
    "inverse_root": inverse_root,
    "reciprocal": reciprocal,
}

FACTORS = ("inverse_root", "reciprocal")  # what multiplies: relative errors matter
