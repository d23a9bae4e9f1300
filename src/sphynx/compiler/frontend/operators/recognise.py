"""Smooth activations that a graph spells out: x * Sigmoid(x) becomes Swish, the products around Erf become Gelu.

A product of two values that are both computed, element by element, from one earlier value is a function of that value.
It is evaluated on a grid and compared with the functions of curves.py: so it does not matter how an exporter spells it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sphynx.compiler.frontend.operators.operation import Call
from sphynx.program.convolve import Array
from sphynx.program.curves import CURVES, erf, hard_swish, sigmoid, softplus

_GRID = np.linspace(-9, 9, 145)
_SAME = 1e-5  # constants are in single precision, most of them
_MOST_CALLS = 16
_MOST_AFTER = 2  # scales behind the product
# What a function is called as an operator.
_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "silu": ("Swish", {}),
    "hard_swish": ("HardSwish", {}),
    "gelu": ("Gelu", {}),
    "gelu_tanh": ("Gelu", {"approximate": b"tanh"}),
    "mish": ("Mish", {}),
}
_ELEMENTWISE: dict[str, Callable[..., Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Pow": np.power,
    "Neg": np.negative,
    "Sigmoid": sigmoid,
    "Tanh": np.tanh,
    "Erf": erf,
    "Exp": np.exp,
    "Softplus": softplus,
    "HardSwish": hard_swish,
    "Relu": lambda x: np.maximum(x, 0),
    "Identity": lambda x: x,
    "Cast": lambda x: x,
}


def recognised(calls: Sequence[Call], constants: Mapping[str, Array]) -> list[Call]:
    """Put one call in the place of each such function; calls that nothing needs any more are still there."""
    scalars = {name: float(array.reshape(-1)[0]) for name, array in constants.items() if _is_scalar(array)}
    makers = {name: call for call in calls for name in call.outputs}
    readers: dict[str, list[Call]] = {}
    for call in calls:
        for name in call.inputs:
            readers.setdefault(name, []).append(call)
    found: dict[int, Call] = {}
    covered: set[int] = set()
    for call in reversed(calls):  # the outermost product first
        maps = [name for name in call.inputs if name not in constants]
        if call.kind != "Mul" or len(maps) != 2 or id(call) in covered:
            continue
        match = _Region(makers, readers, scalars).matched(call)
        if match is not None:
            last, base, function, inner = match
            kind, attributes = _KINDS[function]
            found[id(last)] = replace(last, kind=kind, inputs=(base,), attributes=attributes, fold=None)
            covered |= inner
    return [found.get(id(call), call) for call in calls]


class _Region:
    """The calls between one value and a product of values that are made of it."""

    def __init__(
        self, makers: Mapping[str, Call], readers: Mapping[str, list[Call]], scalars: Mapping[str, float]
    ) -> None:
        self.makers, self.readers, self.scalars = makers, readers, scalars

    def matched(self, product: Call) -> tuple[Call, str, str, set[int]] | None:
        """Return (its last call, the value that it reads, the function's name, the calls)."""
        for base in self.bases(product):
            last = product
            for _ in range(1 + _MOST_AFTER):
                inner: set[int] = set()
                try:
                    with np.errstate(all="ignore"):
                        values = self.value(last.outputs[0], base, inner)
                except (KeyError, TypeError):  # something else enters, or a call lacks an input
                    break
                for function in _KINDS:
                    if np.allclose(values, CURVES[function](_GRID), rtol=0, atol=_SAME):
                        return last, base, function, inner
                following = self.readers.get(last.outputs[0], [])
                if len(following) != 1 or following[0].kind not in ("Mul", "Div"):
                    break
                last = following[0]
        return None

    def bases(self, product: Call) -> list[str]:
        """Values that the product may be a function of, the nearest first."""
        found: list[str] = []
        waiting = list(product.inputs)
        while waiting and len(found) < _MOST_CALLS:
            name = waiting.pop(0)
            if name in self.scalars or name in found:
                continue
            found.append(name)
            maker = self.makers.get(name)
            if maker is not None and self.is_elementwise(maker):
                waiting += maker.inputs
        return found

    def is_elementwise(self, call: Call) -> bool:
        return call.kind in _ELEMENTWISE or call.kind in ("HardSigmoid", "Clip")

    def value(self, name: str, base: str, inner: set[int]) -> Array:
        """On the grid. KeyError where it is not made of the base and numbers alone."""
        if name == base:
            return _GRID
        if name in self.scalars:
            return np.array(self.scalars[name])
        call = self.makers[name]
        inner.add(id(call))
        if not self.is_elementwise(call) or len(inner) > _MOST_CALLS:
            raise KeyError(name)
        if call.kind == "Clip":
            return np.clip(self.value(call.inputs[0], base, inner), *self.bounds(call, base, inner))
        values = [self.value(own, base, inner) for own in call.inputs if own]
        if call.kind == "HardSigmoid":
            slope, offset = (float(call.attributes.get(key, n)) for key, n in (("alpha", 0.2), ("beta", 0.5)))
            return np.clip(slope * values[0] + offset, 0, 1)
        return _ELEMENTWISE[call.kind](*values)

    def bounds(self, clip: Call, base: str, inner: set[int]) -> list[Array]:
        """The bounds of a clip: its second and third input, or attributes as in old files; either may be left out."""
        names = [*clip.inputs[1:], "", ""]
        defaults = (("min", -np.inf), ("max", np.inf))
        return [
            self.value(name, base, inner) if name else np.array(float(clip.attributes.get(key, infinite)))
            for name, (key, infinite) in zip(names, defaults, strict=False)
        ]


def _is_scalar(array: Array) -> bool:
    return array.size == 1 and array.dtype.kind in "fiu"
