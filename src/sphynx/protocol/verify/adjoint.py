"""The transposed linear pass of a program: from secret factors on shares to factors on the masks they were made from.

The client's share of every tensor is an affine function of the masks r that it drew, u = M r - S, where M runs through
linear maps, pools and sums, and S through the server's own shares. For any factors chi on the shares

    <chi, u> - <M^T chi, r> + <chi, S> = 0

and this pass gives M^T chi and, by the factors on each linear map, <chi, S>. It runs backwards through the same steps,
modulo 2^64, of which the ring takes what it needs. docs/security/malicious-client.md says what it is good for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sphynx.program.combine import add_back, gather_back
from sphynx.program.convolve import Array, convolve_back
from sphynx.program.ir import INPUT, Combine, Gather, Linear, Pool, Program
from sphynx.protocol.shares import Words


@dataclass(frozen=True, repr=False)
class Factors:
    """Secret factors that belong together: on committed shares, on drawn masks, and on the server's shares."""

    shares: Mapping[str, Words]  # chi, by the activation that reads the share, and by the tensor of each output
    masks: Mapping[str, Words]  # M^T chi
    maps: Mapping[str, Words]  # what a linear map's own share is to be multiplied by


def transpose(program: Program, weights: Mapping[str, Array], chi: Mapping[str, Words]) -> Factors:
    """`chi` has (images, channels, height, width) for every activation, of what it reads, and for the outputs."""
    totals = _Totals(program, len(next(iter(chi.values()))))
    for name in program.output_names:
        totals.add(name, chi[name])
    masks: dict[str, Words] = {}
    maps: dict[str, Words] = {}
    for step in reversed(program.steps):
        total = totals.take(step.name)
        if isinstance(step, Linear):
            maps[step.name] = total
            for number, term in enumerate(step.terms):
                source = program.shapes[term.source]
                part = convolve_back(total, weights[step.weight_name(number)], term, (source.height, source.width))
                totals.add(term.source, part << np.uint64(term.shift))
        elif isinstance(step, Combine):
            for name, part in add_back(step, total, program.shapes):
                totals.add(name, part)
        elif isinstance(step, Pool):
            totals.add(step.source, pool_back(step, total, tuple(program.shapes[step.source])[1:]))
        elif isinstance(step, Gather):
            totals.add(step.source, gather_back(step, total, program.shapes[step.source]))
        else:
            masks[step.name] = total
            totals.add(step.sources[0], chi[step.name])
    masks[INPUT] = totals.take(INPUT)
    return Factors(chi, masks, maps)


class _Totals:
    """Sums for each tensor so far; zeros where no committed share depends on it."""

    def __init__(self, program: Program, images: int) -> None:
        self._shapes, self._images = program.shapes, images
        self._totals: dict[str, Words] = {}

    def add(self, name: str, part: Words) -> None:
        known = self._totals.get(name)
        self._totals[name] = part if known is None else known + part

    def take(self, name: str) -> Words:
        if name in self._totals:
            return self._totals.pop(name)
        return np.zeros((self._images, *self._shapes[name]), np.uint64)


def pool_back(step: Pool, total: Words, size: tuple[int, ...]) -> Words:
    rows = np.zeros((*total.shape[:3], size[1]), np.uint64)
    for number, ((first, last), factor) in enumerate(zip(step.column_windows, step.column_factors, strict=True)):
        rows[..., first:last] += total[..., number, None] * np.uint64(factor)
    made = np.zeros((*total.shape[:2], *size), np.uint64)
    for number, ((first, last), factor) in enumerate(zip(step.row_windows, step.row_factors, strict=True)):
        made[:, :, first:last] += rows[:, :, number, None] * np.uint64(factor)
    return made
