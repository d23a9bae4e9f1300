"""TrivialAugment's operations against Pillow's, image by image."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from sphynx.data.trivial_augment import OPERATIONS, Strokes, draw_strokes, trivially_augmented

COUNT, SIZE = 12, (17, 13)


def pictures() -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    smooth = torch.rand(COUNT, 3, 5, 4, generator=generator)
    noise = 0.2 * torch.rand(COUNT, 3, *SIZE, generator=generator)
    return ((torch.nn.functional.interpolate(smooth, SIZE, mode="bilinear") * 0.8 + noise) * 255).to(torch.uint8)


def strokes(operation: str, strength: float) -> Strokes:
    return Strokes(np.full(COUNT, list(OPERATIONS).index(operation)), np.full(COUNT, strength))


def by_pillow(pixels: torch.Tensor, change: Callable[[Image.Image], Image.Image]) -> torch.Tensor:
    changed = [np.array(change(Image.fromarray(one.permute(1, 2, 0).numpy()))) for one in pixels]
    return torch.from_numpy(np.stack(changed)).permute(0, 3, 1, 2)


@pytest.mark.parametrize(
    ("operation", "strength", "change"),
    [
        ("brightness", -0.6, lambda p: ImageEnhance.Brightness(p).enhance(1 - 0.99 * 0.6)),
        ("brightness", 0.5, lambda p: ImageEnhance.Brightness(p).enhance(1 + 0.99 * 0.5)),
        ("colour", -0.9, lambda p: ImageEnhance.Color(p).enhance(1 - 0.99 * 0.9)),
        ("colour", 1.0, lambda p: ImageEnhance.Color(p).enhance(1.99)),
        ("contrast", -0.5, lambda p: ImageEnhance.Contrast(p).enhance(1 - 0.99 * 0.5)),
        ("sharpness", 0.7, lambda p: ImageEnhance.Sharpness(p).enhance(1 + 0.99 * 0.7)),
        ("posterize", 0.5, lambda p: ImageOps.posterize(p, 5)),
        ("posterize", -1.0, lambda p: ImageOps.posterize(p, 2)),
        ("solarize", 0.4, lambda p: ImageOps.solarize(p, 153)),
        ("auto-contrast", 0.3, ImageOps.autocontrast),
        ("equalize", 0.3, ImageOps.equalize),
        ("identity", 1.0, lambda p: p),
        ("translate-x", 0.25, lambda p: p.transform(p.size, Image.Transform.AFFINE, (1, 0, 3, 0, 1, 0))),
        ("translate-y", -0.5, lambda p: p.transform(p.size, Image.Transform.AFFINE, (1, 0, 0, 0, 1, -8))),
    ],
)
def test_as_pillow_does(operation: str, strength: float, change: Callable[[Image.Image], Image.Image]) -> None:
    pixels = pictures()
    ours = trivially_augmented(pixels, strokes(operation, strength))
    difference = (ours.int() - by_pillow(pixels, change).int()).abs()
    assert difference.max() <= 2 and difference.float().mean() < 0.6  # in 255: rounding of greys and blends


@pytest.mark.parametrize("strength", [0.3, -0.8])
def test_a_rotation_turns_about_the_centre(strength: float) -> None:
    pixels = pictures()
    turned = trivially_augmented(pixels, strokes("rotate", strength))
    expected = by_pillow(pixels, lambda p: p.rotate(135 * strength))
    same = ((turned.int() - expected.int()).abs() <= 1).float().mean()
    assert same > 0.85  # a pixel whose nearest neighbour is a tie may go either way


def test_shears_keep_their_middle_line() -> None:
    pixels = pictures()
    assert torch.equal(trivially_augmented(pixels, strokes("shear-x", 0.7))[:, :, 8], pixels[:, :, 8])
    assert torch.equal(trivially_augmented(pixels, strokes("shear-y", 0.7))[:, :, :, 6], pixels[:, :, :, 6])


def test_strokes_repeat_and_leave_their_input_alone() -> None:
    pixels = pictures()
    before = pixels.clone()
    drawn = [draw_strokes(np.random.default_rng(4), COUNT) for _ in range(2)]
    first, second = (trivially_augmented(pixels, one) for one in drawn)
    assert torch.equal(first, second) and torch.equal(pixels, before) and not torch.equal(first, pixels)
    many = draw_strokes(np.random.default_rng(0), 5000)
    assert set(many.operations) == set(range(14)) and many.strengths.min() == -1 and many.strengths.max() == 1


def test_grey_images() -> None:
    pixels = pictures()[:, :1]
    for number in range(14):
        changed = trivially_augmented(pixels, Strokes(np.full(COUNT, number), np.full(COUNT, 0.6)))
        assert changed.shape == pixels.shape and changed.dtype == torch.uint8
