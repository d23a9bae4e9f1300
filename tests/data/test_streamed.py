"""Streamed folders: the same face as batches in memory, repeatable whatever the workers, faults named."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sphynx.data.batches import Augmentation
from sphynx.data.open import open_any
from sphynx.data.streamed import StreamedBatches, StreamedData, open_stream, random_resized_crop, stream_plain
from sphynx.errors import InputError
from tests.data.layouts import pixels, write_classes, write_image

AUGMENTATION = Augmentation(crop=True, flip=True, cutout=2, mixup=0.2)


@pytest.fixture
def data(tmp_path: Path) -> StreamedData:
    write_classes(tmp_path / "train", n=9, size=20)
    write_classes(tmp_path / "val", n=2, size=20)
    write_image(tmp_path / "train" / "ant" / "wide.png", pixels(1, (13, 31, 3))[0])  # sizes may differ here
    opened = open_any(str(tmp_path), image_size=8, stream=True)
    assert isinstance(opened, StreamedData)
    return opened


def batches_of(data: StreamedData, workers: int) -> StreamedBatches:
    return StreamedBatches(
        data.train, 4, device="cpu", augmentation=AUGMENTATION, mean=data.mean, std=data.std, seed=5, workers=workers
    )


def test_what_cannot_be_trained_on_is_refused_as_in_memory(tmp_path: Path) -> None:
    """Before the first epoch: without test images the last one would end in a division by zero."""
    for split in ("train", "val"):
        (tmp_path / "empty" / split).mkdir(parents=True)
        write_classes(tmp_path / "one" / split, ("ant",))
        write_classes(tmp_path / "untested" / split)
        write_classes(tmp_path / "unseen" / split)
    for file in [*tmp_path.glob("untested/val/*/*"), *tmp_path.glob("unseen/train/bee/*")]:
        file.write_bytes(b"not an image")
    for name, what in (
        ("empty", "there are no training images"),
        ("one", "only one class"),
        ("untested", "there are no test images"),
        ("unseen", "no training image is of class bee"),
    ):
        for stream in (True, False):
            with pytest.raises(InputError, match=what):
                open_any(str(tmp_path / name), image_size=8, stream=stream, skip_bad=True)


def test_a_sample_that_does_not_fit_the_memory_is_refused(tmp_path: Path) -> None:
    for split in ("train", "val"):
        write_classes(tmp_path / split)
    with pytest.raises(InputError, match="`image_size=10000000`: 10 images of this size need"):
        open_stream(tmp_path, 10_000_000)


def test_workers_and_positions_do_not_change_an_epoch(data: StreamedData) -> None:
    expected = list(batches_of(data, 0))
    assert len(expected) == len(batches_of(data, 0)) == 4
    assert expected[0][0].shape == (4, 3, 8, 8) and expected[0][1].shape == (4, 2)
    resumed = batches_of(data, 2)
    resumed.load_state_dict({"seed": 5, "epoch": 0, "position": 1})
    for (x, y), (x0, y0) in zip(resumed, expected[1:], strict=True):
        assert torch.equal(x, x0) and torch.equal(y, y0)
    assert resumed.state_dict() == {"seed": 5, "epoch": 1, "position": 0}


def test_evaluation_reads_all_images_in_order(data: StreamedData) -> None:
    labels = torch.cat([y for _, y in stream_plain(data.test, 3, device="cpu", mean=data.mean, std=data.std)])
    assert torch.equal(labels, data.test.labels)


def test_splits_are_stratified(data: StreamedData) -> None:
    rest, held_out = data.train.split(0.2, 0)
    assert len(rest) + len(held_out) == len(data.train) and sorted(held_out.labels.tolist()) == [0, 0, 1]


def test_a_sample_is_the_middles_of_its_images(data: StreamedData) -> None:
    sample = data.train.sample(5)
    assert sample.images.shape == (5, 3, 8, 8) and torch.equal(sample.images, data.train.sample(5).images)
    everything = data.test.sample(100)
    assert torch.equal(everything.labels, data.test.labels)
    plain = torch.cat([x for x, _ in stream_plain(data.test, 3, device="cpu", mean=(0.0,) * 3, std=(1.0,) * 3)])
    assert torch.allclose(everything.images / 255, plain)


def test_a_corrupt_image_is_named_across_processes(data: StreamedData) -> None:
    data.train.files[2].write_bytes(b"broken")
    with pytest.raises(InputError, match=str(data.train.files[2])):
        list(batches_of(data, 1))


def test_a_random_crop_of_a_constant_image_is_constant() -> None:
    picture = Image.new("RGB", (40, 24), (7, 8, 9))
    crop = np.asarray(random_resized_crop(picture, 16, np.random.default_rng(0)))
    assert crop.shape == (16, 16, 3) and (crop == [7, 8, 9]).all()


def test_streaming_needs_a_size_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="need an image size"):
        open_any(str(tmp_path), stream=True)
    with pytest.raises(InputError, match="no such folder"):
        open_any("digits", image_size=8, stream=True)
    with pytest.raises(InputError, match="no train/ folder"):
        open_any(str(tmp_path), image_size=8, stream=True)
