"""Turns, scalings, contrast and brightness: against Pillow's, and what nothing changes."""

import math

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from sphynx.data.batches import Augmentation, Batches, balanced_order
from sphynx.data.images import ImageSet
from sphynx.data.warp import draw_warps, warped

NOTHING = torch.tensor([[0.0, 1.0, 1.0, 0.0]])


def picture(height: int, width: int, seed: int = 0) -> torch.Tensor:
    """Smooth, so that samplings which differ in the last bits do not differ in what they read."""
    small = np.random.default_rng(seed).integers(0, 256, (5, 5)).astype(np.uint8)
    made = Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC)
    return torch.from_numpy(np.array(made))[None, None]


@given(st.integers(0, 100))
def test_nothing_drawn_changes_nothing(seed: int) -> None:
    pixels = picture(12, 17, seed)
    torch.testing.assert_close(warped(pixels, NOTHING), pixels.float(), atol=1e-2, rtol=0)


@settings(deadline=None)
@given(st.floats(-40, 40), st.floats(0.8, 1.25), st.sampled_from([(32, 32), (24, 40)]))
def test_turns_and_scalings_are_pillows(degrees: float, scale: float, size: tuple[int, int]) -> None:
    pixels = picture(*size)
    found = warped(pixels, torch.tensor([[math.radians(degrees), scale, 1.0, 0.0]]))[0, 0].numpy()
    height, width = size
    cosine, sine = math.cos(math.radians(degrees)) / scale, math.sin(math.radians(degrees)) / scale
    x, y = width / 2, height / 2
    matrix = (cosine, -sine, x - cosine * x + sine * y, sine, cosine, y - sine * x - cosine * y)
    image = Image.fromarray(pixels[0, 0].numpy())
    wanted = np.asarray(image.transform((width, height), Image.Transform.AFFINE, matrix, Image.Resampling.BILINEAR))
    # Pillow leaves the outermost half pixel black, which we blend with black.
    known = warped(torch.full_like(pixels, 255), torch.tensor([[math.radians(degrees), scale, 1.0, 0.0]]))[0, 0] == 255
    assert np.abs(found - wanted)[known.numpy()].max() <= 2.0


def test_contrast_and_brightness_by_hand() -> None:
    pixels = torch.tensor([[[[50, 150], [100, 100]]]], dtype=torch.uint8)
    found = warped(pixels, torch.tensor([[0.0, 1.0, 1.5, 0.1]]))
    torch.testing.assert_close(found, torch.tensor([[[[50.5, 200.5], [125.5, 125.5]]]]))
    assert warped(pixels, torch.tensor([[0.0, 1.0, 9.0, 0.0]])).unique().tolist() == [0.0, 100.0, 255.0]


def test_draws_stay_within_their_limits() -> None:
    drawn = draw_warps(np.random.default_rng(0), 2000, 10, 0.2, 0.5, 0.1)
    low, high = drawn.amin(0).tolist(), drawn.amax(0).tolist()
    limits = [(-math.radians(10), math.radians(10)), (1 / 1.2, 1.2), (1 / 1.5, 1.5), (-0.1, 0.1)]
    for least, most, (lowest, highest) in zip(low, high, limits, strict=True):
        assert lowest - 1e-6 <= least < most <= highest + 1e-6 and most - least > 0.95 * (highest - lowest)


def test_an_epoch_of_warps_continues_from_anywhere() -> None:
    images = ImageSet(torch.randint(0, 256, (20, 1, 9, 9), dtype=torch.uint8), torch.arange(20) % 3, ("a", "b", "c"))
    settings_ = Augmentation(flip=True, rotate=10, scale=0.1, contrast=0.2, brightness=0.1)

    def made() -> Batches:
        return Batches(images, 4, device="cpu", mean=(0.5,), std=(0.2,), seed=1, augmentation=settings_, balanced=True)

    whole, left = list(made()), made()
    for _, _ in zip(range(2), left, strict=False):
        pass
    again = made()
    again.load_state_dict(left.state_dict())
    for (x, y), (one, label) in zip(whole[2:], again, strict=True):
        assert torch.equal(x, one) and torch.equal(y, label)


@given(st.integers(0, 1000), st.lists(st.integers(1, 40), min_size=2, max_size=5))
def test_balanced_orders_have_each_class_alike(seed: int, sizes: list[int]) -> None:
    labels = np.repeat(np.arange(len(sizes)), sizes)
    order = balanced_order(np.random.default_rng(seed), labels)
    counts = np.bincount(labels[order], minlength=len(sizes))
    assert len(order) == len(labels) and counts.max() - counts.min() <= 1
    for kind, size in enumerate(sizes):
        often = np.bincount(order, minlength=len(labels))[labels == kind]
        assert often.max() - often.min() <= 1 and len(often) == size
