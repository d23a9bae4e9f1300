"""TrivialAugment (Müller & Hutter 2021, the wide set) of whole batches on the training device.

Each image gets one operation of fourteen, with one of 31 strengths and a sign, all drawn uniformly. Operations are
applied to the images that drew them, together; pixels are uint8 before and after. Their meaning is Pillow's, which the
tests hold them against; shears, translations and rotations take the nearest pixel and fill with black.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

STRENGTHS = 31
GREY = (0.299, 0.587, 0.114)
MOST_SHEAR = MOST_BLEND = 0.99
MOST_PIXELS, MOST_DEGREES, MOST_BITS = 32, 135.0, 6


@dataclass(frozen=True, eq=False)
class Strokes:
    """One row per image: which operation, and a strength from -1 to 1. Kept on the host, which groups by operation."""

    operations: NDArray[np.int64]
    strengths: NDArray[np.float64]

    def __getitem__(self, rows: NDArray[np.int64]) -> Strokes:
        return Strokes(self.operations[rows], self.strengths[rows])


def draw_strokes(random: np.random.Generator, count: int) -> Strokes:
    operations = random.integers(0, len(OPERATIONS), count)
    strengths = random.integers(0, STRENGTHS, count) / (STRENGTHS - 1)
    return Strokes(operations, np.where(random.random(count) < 0.5, -strengths, strengths))


def trivially_augmented(pixels: Tensor, strokes: Strokes) -> Tensor:
    """uint8 [n, channels, height, width]; a new tensor."""
    out = pixels.clone()
    for number, operation in enumerate(OPERATIONS.values()):
        chosen = np.flatnonzero(strokes.operations == number)
        if len(chosen) and operation is not None:
            rows = torch.from_numpy(chosen).to(pixels.device)
            strength = torch.from_numpy(strokes.strengths[chosen]).float().to(pixels.device)
            out[rows] = operation(pixels[rows], strength)
    return out


def shear_x(pixels: Tensor, strength: Tensor) -> Tensor:
    return _move(pixels, 1.0, MOST_SHEAR * strength, 0.0, 0.0, 1.0, 0.0)


def shear_y(pixels: Tensor, strength: Tensor) -> Tensor:
    return _move(pixels, 1.0, 0.0, 0.0, MOST_SHEAR * strength, 1.0, 0.0)


def translate_x(pixels: Tensor, strength: Tensor) -> Tensor:
    return _move(pixels, 1.0, 0.0, (min(MOST_PIXELS, pixels.shape[3]) * strength).round(), 0.0, 1.0, 0.0)


def translate_y(pixels: Tensor, strength: Tensor) -> Tensor:
    return _move(pixels, 1.0, 0.0, 0.0, 0.0, 1.0, (min(MOST_PIXELS, pixels.shape[2]) * strength).round())


def rotate(pixels: Tensor, strength: Tensor) -> Tensor:
    angle = strength * math.radians(MOST_DEGREES)
    return _move(pixels, angle.cos(), -angle.sin(), 0.0, angle.sin(), angle.cos(), 0.0)


def brightness(pixels: Tensor, strength: Tensor) -> Tensor:
    return _blend(torch.zeros_like(pixels, dtype=torch.float32), pixels, strength)


def colour(pixels: Tensor, strength: Tensor) -> Tensor:
    return _blend(_grey(pixels).expand(pixels.shape), pixels, strength)


def contrast(pixels: Tensor, strength: Tensor) -> Tensor:
    mean = _grey(pixels).mean(dim=(1, 2, 3), keepdim=True).add(0.5).floor()
    return _blend(mean.expand(pixels.shape), pixels, strength)


def sharpness(pixels: Tensor, strength: Tensor) -> Tensor:
    """Away from, or towards, the image smoothed by a 3x3 kernel; the border is not smoothed."""
    smooth = pixels.float()
    if min(pixels.shape[2:]) > 2:
        kernel = torch.full((1, 1, 3, 3), 1 / 13, device=pixels.device)
        kernel[:, :, 1, 1] = 5 / 13
        inner = functional.conv2d(smooth.flatten(0, 1)[:, None], kernel).add(0.5).floor()
        smooth = smooth.clone()
        smooth[:, :, 1:-1, 1:-1] = inner.reshape(*pixels.shape[:2], *inner.shape[2:])
    return _blend(smooth, pixels, strength)


def posterize(pixels: Tensor, strength: Tensor) -> Tensor:
    kept = 256 - (2 ** (MOST_BITS * strength.abs()).round()).to(torch.int32)
    return (pixels.int() & kept[:, None, None, None]).to(torch.uint8)


def solarize(pixels: Tensor, strength: Tensor) -> Tensor:
    threshold = (255 * (1 - strength.abs()))[:, None, None, None]
    return torch.where(pixels < threshold, pixels, 255 - pixels)


def auto_contrast(pixels: Tensor, strength: Tensor) -> Tensor:  # noqa: ARG001 - it has no strength
    values = pixels.float()
    low, high = values.amin(dim=(2, 3), keepdim=True), values.amax(dim=(2, 3), keepdim=True)
    stretched = ((values - low) * 255 / (high - low).clamp_min(1)).add(1e-3).floor()
    return torch.where(high > low, stretched, values).to(torch.uint8)


def equalize(pixels: Tensor, strength: Tensor) -> Tensor:  # noqa: ARG001 - it has no strength
    """Spread each channel's values so that about as many pixels have every one."""
    flat = pixels.flatten(2).long()
    counts = torch.zeros(*flat.shape[:2], 256, dtype=torch.int64, device=pixels.device)
    counts.scatter_add_(2, flat, torch.ones_like(flat))
    highest = flat.amax(2, keepdim=True)
    step = (flat.shape[2] - counts.gather(2, highest)) // 255
    below = counts.cumsum(2) - counts
    table = ((below + step // 2) // step.clamp_min(1)).clamp_max(255)
    spread = torch.where(step > 0, table.gather(2, flat), flat)
    return spread.view(pixels.shape).to(torch.uint8)


Operation = Callable[[Tensor, Tensor], Tensor]
OPERATIONS: dict[str, Operation | None] = {
    "identity": None, "shear-x": shear_x, "shear-y": shear_y, "translate-x": translate_x, "translate-y": translate_y,
    "rotate": rotate, "brightness": brightness, "colour": colour, "contrast": contrast, "sharpness": sharpness,
    "posterize": posterize, "solarize": solarize, "auto-contrast": auto_contrast, "equalize": equalize,
}  # fmt: skip


def _grey(pixels: Tensor) -> Tensor:
    if pixels.shape[1] != 3:
        return pixels.float().mean(dim=1, keepdim=True).floor()
    weights = torch.tensor(GREY, device=pixels.device)[:, None, None]
    return (pixels.float() * weights).sum(dim=1, keepdim=True).floor()


def _blend(towards: Tensor, pixels: Tensor, strength: Tensor) -> Tensor:
    """At strength 0 the image itself, at -1 nearly the other one, at 1 as far away from it."""
    factor = (1 + MOST_BLEND * strength)[:, None, None, None]
    return (towards + factor * (pixels.float() - towards)).clamp(0, 255).to(torch.uint8)


def _move(pixels: Tensor, *matrix: Tensor | float) -> Tensor:
    """Read each pixel from x' = a x + b y + c, y' = d x + e y + f, in pixels from the centre."""
    count, _, height, width = pixels.shape
    a, b, c, d, e, f = (torch.as_tensor(value, device=pixels.device).expand(count) for value in matrix)
    ratio = height / width
    rows = torch.stack(
        [torch.stack([a, b * ratio, 2 * c / width], 1), torch.stack([d / ratio, e, 2 * f / height], 1)], 1
    )
    grid = functional.affine_grid(rows.float(), list(pixels.shape), align_corners=False)
    moved = functional.grid_sample(pixels.float(), grid, "nearest", "zeros", align_corners=False)
    return moved.round().to(torch.uint8)
