"""Whole-batch augmentation against image-by-image references; epochs that can be left and continued anywhere."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from sphynx.data.batches import (
    Augmentation,
    Batches,
    Normalise,
    crop_and_flip,
    cut_out,
    draw_epoch,
    padding,
    plain_batches,
)
from sphynx.errors import InputError
from tests.data.test_images import random_set

MEAN, STD = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)
EVERYTHING = Augmentation(crop=True, flip=True, cutout=3, mixup=0.4, cutmix=0.5, trivial=True)


def batches_of(n: int = 50, batch_size: int = 8, augmentation: Augmentation = EVERYTHING, **settings: Any) -> Batches:
    return Batches(
        random_set(n), batch_size, device="cpu", augmentation=augmentation, mean=MEAN, std=STD, seed=3, **settings
    )


def test_normalisation_is_torchvisions() -> None:
    pixels = random_set().images
    reference = (pixels.double() / 255 - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)
    torch.testing.assert_close(Normalise(MEAN, STD, torch.device("cpu"))(pixels), reference.float(), atol=2e-6, rtol=0)


@given(seed=st.integers(0, 10**6), height=st.integers(1, 34), width=st.integers(1, 34))
def test_crop_and_flip_image_by_image(seed: int, height: int, width: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(1, 256, (5, 3, height, width), dtype=torch.uint8, generator=generator)
    pad_y, pad_x = padding(height), padding(width)
    offsets = torch.stack([torch.randint(0, 2 * pad + 1, (5,), generator=generator) for pad in (pad_y, pad_x)], dim=1)
    mirrors = torch.rand(5, generator=generator) < 0.5
    for image, (top, left), mirror, result in zip(
        pixels, offsets.tolist(), mirrors, crop_and_flip(pixels, offsets, mirrors), strict=True
    ):
        window = functional.pad(image, (pad_x, pad_x, pad_y, pad_y))[:, top : top + height, left : left + width]
        assert torch.equal(result, window.flip(2) if mirror else window)


@given(seed=st.integers(0, 10**6), side=st.integers(1, 12))
def test_cutout_image_by_image(seed: int, side: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(4, 2, 9, 7, generator=generator) + 10
    centres = torch.stack([torch.randint(0, length, (4,), generator=generator) for length in (9, 7)], dim=1)
    for image, (row, column), result in zip(x, centres.tolist(), cut_out(x, centres, side), strict=True):
        expected = image.clone()
        top, left = row - side // 2, column - side // 2
        expected[:, max(top, 0) : max(top + side, 0), max(left, 0) : max(left + side, 0)] = 0
        assert torch.equal(result, expected)


def test_padding_is_an_eighth() -> None:
    assert [padding(size) for size in (8, 28, 32, 64, 224)] == [1, 3, 4, 8, 28]


def test_a_crop_leaves_something_of_every_image() -> None:
    """A step aside would leave nothing of one row or column, and half of two."""
    assert [padding(size) for size in (1, 2, 3)] == [0, 1, 1]
    images = torch.full((64, 1, 1, 3), 9, dtype=torch.uint8)
    draws = draw_epoch(64, (1, 3), 1, Augmentation(crop=True), seed=0, epoch=0)
    assert crop_and_flip(images, draws.offsets, draws.mirrors).flatten(1).any(dim=1).all()


def test_every_image_once_per_epoch_in_a_new_order() -> None:
    images = random_set(50)
    batches = Batches(images, 8, device="cpu", mean=MEAN, std=STD, drop_last=False)
    epochs = [torch.cat([x for x, _ in batches]) for _ in range(2)]
    everything, _ = next(plain_batches(images, 50, device="cpu", mean=MEAN, std=STD))

    def rows(x: Tensor) -> list[list[float]]:
        return sorted(x.flatten(1).tolist())

    assert rows(epochs[0]) == rows(epochs[1]) == rows(everything)
    assert not torch.equal(epochs[0], epochs[1])
    assert batches.state_dict() == {"seed": 0, "epoch": 2, "position": 0}


def test_labels_stay_with_their_images() -> None:
    images = random_set(50)
    marked = images.images.clone()
    marked[:] = images.labels.view(-1, 1, 1, 1).to(torch.uint8)
    batches = Batches(
        type(images)(marked, images.labels, images.class_names), 7, device="cpu", mean=(0.0,) * 3, std=(1 / 255,) * 3
    )
    for x, y in batches:
        assert torch.equal(x[:, 0, 0, 0].round().long(), y)


def test_mixup_mixes_images_and_labels_alike() -> None:
    mixed = batches_of(augmentation=Augmentation(mixup=0.4))
    plain = batches_of(augmentation=Augmentation())
    weights = mixed.current_draws().mixes
    for (weight, _), (x, y), (x0, y0) in zip(weights, mixed, plain, strict=True):
        torch.testing.assert_close(x, weight * x0 + (1 - weight) * torch.roll(x0, 1, 0))
        one_hot = functional.one_hot(y0, 3).float()
        torch.testing.assert_close(y, weight * one_hot + (1 - weight) * torch.roll(one_hot, 1, 0))


@given(stop=st.integers(0, 13))
def test_an_epoch_continues_from_any_position(stop: int) -> None:
    whole = batches_of()
    expected = [x for _ in range(3) for x, _ in whole]
    first = batches_of()
    seen: list[Tensor] = []
    while len(seen) < stop:
        for x, _ in first:
            seen.append(x)
            if len(seen) == stop:
                break
    second = batches_of()
    second.load_state_dict(first.state_dict())
    while len(seen) < len(expected):
        seen += [x for x, _ in second]
    assert all(torch.equal(a, b) for a, b in zip(seen, expected, strict=True))


def test_shards_share_out_each_batch() -> None:
    whole = [x for x, _ in batches_of(augmentation=Augmentation(crop=True))]
    parts = [[x for x, _ in batches_of(augmentation=Augmentation(crop=True), shard=(rank, 2))] for rank in (0, 1)]
    for x, first, second in zip(whole, *parts, strict=True):
        assert torch.equal(x, torch.cat([first, second]))
    with pytest.raises(InputError, match="does not divide"):
        batches_of(batch_size=9, shard=(0, 2))


def test_a_set_smaller_than_a_batch_is_one_batch() -> None:
    batches = batches_of(5, 96)
    assert len(batches) == 1 and len(next(iter(batches))[0]) == 5


def test_draws_are_uniform() -> None:
    draws = batches_of(20_000, augmentation=EVERYTHING).current_draws()
    for axis in (0, 1):  # size 8: offsets 0, 1, 2; centres 0 .. 7
        np.testing.assert_allclose(np.bincount(draws.offsets[:, axis]) / 20_000, 1 / 3, atol=0.02)
        np.testing.assert_allclose(np.bincount(draws.centres[:, axis]) / 20_000, 1 / 8, atol=0.02)
    assert abs(float(draws.mirrors.float().mean()) - 0.5) < 0.02


def test_cutmix_takes_a_box_of_the_neighbour_and_its_share_of_the_label() -> None:
    mixed = batches_of(augmentation=Augmentation(mixup=0.4, cutmix=0.7))
    plain = batches_of(augmentation=Augmentation())
    kinds = set()
    for mix, (x, y), (x0, y0) in zip(mixed.current_draws().mixes, mixed, plain, strict=True):
        kinds.add(mix.box is None)
        if mix.box is None:
            continue
        top, bottom, left, right = mix.box
        expected = x0.clone()
        expected[:, :, top:bottom, left:right] = torch.roll(x0, 1, 0)[:, :, top:bottom, left:right]
        assert torch.equal(x, expected)
        area = (bottom - top) * (right - left) / (x.shape[2] * x.shape[3])
        one_hot = functional.one_hot(y0, 3).float()
        torch.testing.assert_close(y, (1 - area) * one_hot + area * torch.roll(one_hot, 1, 0))
    assert kinds == {True, False}


def test_a_period_repeats_its_epochs() -> None:
    batches = batches_of(augmentation=EVERYTHING, period=2)
    epochs = [[x for x, _ in batches] for _ in range(4)]
    for first, second in ((0, 2), (1, 3)):
        assert all(torch.equal(a, b) for a, b in zip(epochs[first], epochs[second], strict=True))
    assert not torch.equal(epochs[0][0], epochs[1][0]) and batches.epoch == 4
