"""Image sets: exact statistics, and splits that are disjoint, complete, stratified and seeded."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from sphynx.data.images import ImageSet, make_data, stratified
from sphynx.errors import InputError


def random_set(n: int = 60, classes: int = 3, size: int = 8, channels: int = 3, seed: int = 0) -> ImageSet:
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 256, (n, channels, size, size), dtype=torch.uint8, generator=generator)
    return ImageSet(images, torch.arange(n) % classes, tuple(f"class {label}" for label in range(classes)))


def test_statistics_are_numpys() -> None:
    images = random_set()
    mean, std = images.statistics()
    pixels = images.images.numpy() / 255
    np.testing.assert_allclose(mean, pixels.mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(std, pixels.std((0, 2, 3)), rtol=1e-12)


@given(
    labels=st.lists(st.integers(0, 5), min_size=1, max_size=200),
    fraction=st.floats(0, 1),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_split_is_stratified_and_loses_nothing(labels: list[int], fraction: float, seed: int) -> None:
    given_labels = torch.tensor(labels)
    rest, taken = stratified(given_labels, fraction, seed)
    assert sorted(torch.cat([rest, taken]).tolist()) == list(range(len(labels)))
    for label in set(labels):
        expected = labels.count(label) * fraction
        assert abs(int((given_labels[taken] == label).sum()) - expected) <= 1 + 1e-6


def test_halves_differ_by_seed_and_repeat() -> None:
    images = random_set(101)
    first, second = images.halves(1)
    assert (len(first), len(second)) == (51, 50)
    assert torch.equal(images.halves(1)[0].images, first.images)
    assert not torch.equal(images.halves(2)[0].images, first.images)
    counts = [torch.bincount(half.labels) for half in (first, second)]
    assert int((counts[0] - counts[1]).abs().max()) <= 1


def test_class_sorted_images_split_evenly() -> None:
    images = ImageSet(torch.zeros(100, 1, 2, 2, dtype=torch.uint8), torch.arange(100) // 10, tuple("abcdefghij"))
    _, held_out = images.split(0.2, 0)
    assert torch.bincount(held_out.labels).tolist() == [2] * 10


def test_unusable_sets_are_refused_with_all_faults() -> None:
    images = random_set()
    no_class_2 = images.subset((images.labels != 2).nonzero().flatten())
    with pytest.raises(
        InputError, match=r"folder/x: 2 errors[\s\S]*no training image is of class class 2[\s\S]*no test"
    ):
        make_data("x", no_class_2, images.subset(torch.tensor([], dtype=torch.int64)), where="folder/x")
    with pytest.raises(InputError, match="training images are"):
        make_data("x", images, random_set(size=6), where="x")
    with pytest.raises(InputError, match="only one class"):
        make_data("x", random_set(classes=1), random_set(classes=1), where="x")
