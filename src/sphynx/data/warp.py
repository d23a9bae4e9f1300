"""Random rotations, scalings, contrast and brightness of whole batches, on the training device.

One row of numbers per image and epoch, drawn on the host with the epoch's other random numbers. A picture is turned and
scaled about its middle by one bilinear sampling, black around it; then its values are stretched about their mean and
shifted, and cut off at black and white. Pixels are uint8 before and float32 from 0 to 255 after.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

WHITE = 255.0
ANGLE, SCALE, CONTRAST, BRIGHTNESS = range(4)  # columns


def draw_warps(
    random: np.random.Generator, count: int, degrees: float, scale: float, contrast: float, brightness: float
) -> Tensor:
    """float32 [n, 4]: an angle within +-`degrees`, in radians; a factor of size and one of contrast, each up to 1 + its
    limit or down to the inverse, evenly in the logarithm; a shift within +-`brightness` of black to white."""
    even = random.uniform(-1, 1, (count, 4))
    limits = [math.radians(degrees), math.log1p(scale), math.log1p(contrast), brightness]
    drawn = even * limits
    drawn[:, [SCALE, CONTRAST]] = np.exp(drawn[:, [SCALE, CONTRAST]])
    return torch.from_numpy(drawn).float()


def warped(pixels: Tensor, warps: Tensor) -> Tensor:
    return _restained(
        _turned(pixels.float(), warps[:, ANGLE], warps[:, SCALE]), warps[:, CONTRAST], warps[:, BRIGHTNESS]
    )


def _turned(pixels: Tensor, angles: Tensor, scales: Tensor) -> Tensor:
    """`affine_grid` reads places from -1 to 1 along each side, so that a turn of an oblong picture needs its shape."""
    height, width = pixels.shape[2:]
    cosines, sines, none = angles.cos() / scales, angles.sin() / scales, torch.zeros_like(angles)
    rows = [
        torch.stack([cosines, -sines * (height / width), none], 1),
        torch.stack([sines * (width / height), cosines, none], 1),
    ]
    grid = functional.affine_grid(torch.stack(rows, 1), list(pixels.shape), align_corners=False)
    return functional.grid_sample(pixels, grid, "bilinear", "zeros", align_corners=False)


def _restained(pixels: Tensor, contrasts: Tensor, shifts: Tensor) -> Tensor:
    mean = pixels.mean(dim=(1, 2, 3), keepdim=True)
    factor, shift = contrasts[:, None, None, None], shifts[:, None, None, None]
    return (mean + factor * (pixels - mean) + WHITE * shift).clamp(0, WHITE)
