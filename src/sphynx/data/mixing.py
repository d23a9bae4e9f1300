"""A batch mixed with itself, shifted by one image: by weight (mixup, Zhang et al. 2018) or by a box (CutMix, Yun et
al. 2019). One mix per batch, drawn on the host; the labels are mixed by the share of pixels that each image has."""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numpy as np
from torch import Tensor


class Mix(NamedTuple):
    weight: float  # of an image itself, the rest is its neighbour's
    box: tuple[int, int, int, int] | None = None  # top, bottom, left, right of what the neighbour covers; None = all


NOT_MIXED = Mix(1.0)


def draw_mixes(
    random: np.random.Generator, batches: int, size: tuple[int, int], mixup: float, cutmix: float
) -> tuple[Mix, ...]:
    """`mixup` is Beta's parameter, 0 for none; each batch is cut instead with probability `cutmix`."""
    weights = random.beta(mixup, mixup, size=batches) if mixup > 0 else np.ones(batches)
    mixes = [Mix(weight) for weight in weights.tolist()]
    if cutmix > 0:
        cut = random.random(batches) < cutmix
        shares, centres = random.random(batches), random.integers(0, size, size=(batches, 2))
        for batch in np.flatnonzero(cut):
            mixes[batch] = boxed(float(shares[batch]), (int(centres[batch, 0]), int(centres[batch, 1])), size)
    return tuple(mixes)


def boxed(share: float, centre: tuple[int, int], size: tuple[int, int]) -> Mix:
    """A box of `share` of the image around the centre, cut by the border; the weight is that of what it leaves."""
    edges = []
    for length, middle in zip(size, centre, strict=True):
        side = int(length * sqrt(share))
        edges += [max(0, middle - side // 2), min(length, middle - side // 2 + side)]
    top, bottom, left, right = edges
    return Mix(1 - (bottom - top) * (right - left) / (size[0] * size[1]), (top, bottom, left, right))


def mixed_images(x: Tensor, mix: Mix) -> Tensor:
    if mix.box is None:
        return mixed_values(x, mix.weight)
    top, bottom, left, right = mix.box
    out = x.clone()
    out[:, :, top:bottom, left:right] = x.roll(1, 0)[:, :, top:bottom, left:right]
    return out


def mixed_values(values: Tensor, weight: float) -> Tensor:
    return weight * values + (1 - weight) * values.roll(1, 0)
