"""Find the numbers of a network of ours by the names of torch's state, whoever holds them. No torch.

A walker of cells or of a stream knows from the design which layers there are; so that it walks a torch module and
stored arrays alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from sphynx.compiler.fusion.affine import Floats
from sphynx.space.reduced import Activations

NORM_EPSILON = 1e-5  # torch's, which no network of ours changes


class Numbers(Protocol):
    @property
    def reduced(self) -> Mapping[str, Activations]:
        """Tell what became of ReLU layers, by their names; those that are not named are as they were."""

    def find(self, name: str) -> Floats | None:
        """Return an array in double precision; None where the network has none of that name."""

    def kernel(self, name: str, *, outline: bool) -> Floats:
        """Return a convolution's weights; in an outline ones where a tap is used."""


def array_of(numbers: Numbers, name: str) -> Floats:
    found = numbers.find(name)
    if found is None:
        raise KeyError(name)
    return found


def norm_of(numbers: Numbers, name: str) -> tuple[Floats, Floats]:
    """Return the factor and shift of a batch norm with its running statistics."""
    mean, variance = (array_of(numbers, f"{name}.running_{which}") for which in ("mean", "var"))
    return fixed_norm(mean, variance, numbers.find(f"{name}.weight"), numbers.find(f"{name}.bias"), NORM_EPSILON)


def fixed_norm(
    mean: Floats, variance: Floats, weight: Floats | None, bias: Floats | None, epsilon: float
) -> tuple[Floats, Floats]:
    factor = 1 / np.sqrt(variance + epsilon)
    if weight is not None:
        factor = factor * weight
    shift = -mean * factor
    return factor, shift if bias is None else shift + bias
