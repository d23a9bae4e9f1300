"""A party's shares of tensors: uniform masks, and what it does to its shares alone, without a message."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.core import Prg
from sphynx.program.combine import combined, gathered
from sphynx.program.ir import Combine, Gather, Pool, Program, PublicMap

Words = NDArray[np.uint64]
Ring = NDArray[Any]  # uint32 or uint64, whichever is the narrower that holds the ring; bits above it mean nothing


def ring_mask(program: Program) -> np.uint64:
    return np.uint64(2**program.ring_bits - 1)


def draw_mask(prg: Prg, program: Program, name: str, images: int) -> Words:
    """A fresh uniform mask for a tensor, (images, channels, height, width)."""
    mask = np.empty((images, *program.shapes[name]), np.uint64)
    prg.fill_words(mask.reshape(-1))
    mask &= ring_mask(program)
    return mask


def apply_public(step: PublicMap, shares: Mapping[str, Ring], constants: Words | None = None) -> Ring:
    """Apply a public map to a party's own shares, modulo what the element type holds; the server adds the constants."""
    if isinstance(step, Combine):
        return combined(step, shares, constants)
    if isinstance(step, Gather):
        return gathered(step, shares[step.source])
    return pool_share(step, shares[step.source])


def pool_share(step: Pool, share: Ring) -> Ring:
    """A public map: each party applies it to its own share, modulo whatever the element type holds."""
    rows = _window_sums(share, 2, step.row_windows, step.row_factors)
    return _window_sums(rows, 3, step.column_windows, step.column_factors)


def _window_sums(share: Ring, axis: int, windows: Sequence[tuple[int, int]], factors: Sequence[int]) -> Ring:
    """A crop is a view of the share: nobody writes into a tensor that is known."""
    begin, end = windows[0][0], windows[-1][1]
    if list(windows) == [(at, at + 1) for at in range(begin, end)]:
        sums: Ring = share[(slice(None),) * axis + (slice(begin, end),)]
    else:
        sums = _sums_by_differences(share, axis, windows)
    if set(factors) == {1}:
        return sums
    along = [1] * share.ndim
    along[axis] = -1
    scaled: Ring = sums * np.array(factors, share.dtype).reshape(along)
    return scaled


def _sums_by_differences(share: Ring, axis: int, windows: Sequence[tuple[int, int]]) -> Ring:
    """Differences of running sums, which wrap around as the ring does."""
    first, last = np.array(windows).T
    nothing = np.zeros_like(share.take([0], axis))
    running = np.concatenate([nothing, share.cumsum(axis, share.dtype.type)], axis)
    sums: Ring = running.take(last, axis) - running.take(first, axis)
    return sums
