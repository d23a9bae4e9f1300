"""Images to calibrate with, from arrays, tensors, loaders, data sets of torch, loose folders and .npy files."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from sphynx.data.open import open_data
from sphynx.data.samples import open_samples, pixels_for, samples_of
from sphynx.errors import InputError
from sphynx.space.tally import Shape

IMAGE = Shape(3, 4, 6)
PIXELS = np.random.default_rng(0).integers(0, 256, (9, *IMAGE)).astype(np.uint8)
LABELS = torch.arange(9) % 3


def test_arrays_and_tensors_have_no_labels() -> None:
    for given in (PIXELS, torch.from_numpy(PIXELS)):
        found = samples_of(given, 5)
        assert found.labels is None and found.images.shape == (5, *IMAGE)
        assert (samples_of(given, 5).images == found.images).all()  # the same ones every time
    assert len(samples_of(PIXELS, 0)) == 9


def test_a_data_set_gives_what_compile_takes_of_it() -> None:
    data = open_data("digits")
    found = samples_of(data, 20)
    assert found.labels is not None and found.class_names == data.train.class_names and found.source == data.source


def test_loaders_and_data_sets_of_torch() -> None:
    floats = torch.from_numpy(PIXELS / 255).float()
    labelled = samples_of(DataLoader(TensorDataset(floats, LABELS), batch_size=4), 6)
    assert len(labelled) == 8 and labelled.labels is not None and labelled.labels.tolist() == LABELS[:8].tolist()
    assert (pixels_for(labelled.images, IMAGE) == PIXELS[:8]).all()
    assert samples_of(DataLoader(TensorDataset(floats), batch_size=4), 6).labels is None
    alone = samples_of(TensorDataset(floats, LABELS), 0)
    assert alone.labels is not None and len(alone) == 9
    assert samples_of(TensorDataset(floats, floats), 2).labels is None  # pairs of images


class Pictures(Dataset[tuple[Image.Image, int]]):
    classes = ("ant", "bee", "cow")

    def __len__(self) -> int:
        return len(PIXELS)

    def __getitem__(self, index: int) -> tuple[Image.Image, int]:
        return Image.fromarray(PIXELS[index].transpose(1, 2, 0)), int(LABELS[index])


class Stream(IterableDataset[torch.Tensor]):
    def __iter__(self):  # type: ignore[no-untyped-def]  # of tensors
        return iter(torch.from_numpy(PIXELS))


def test_pictures_with_class_names_and_streams() -> None:
    found = samples_of(Pictures(), 0)
    assert found.class_names == Pictures.classes and (pixels_for(found.images, IMAGE) == PIXELS).all()
    assert (samples_of(Stream(), 4).images == PIXELS[:4]).all()


def test_pixels_are_found_again_in_what_loaders_give() -> None:
    mean, std = (0.4, 0.5, 0.6), (0.2, 0.3, 0.25)
    shaped = [np.array(each, np.float32).reshape(3, 1, 1) for each in (mean, std)]
    normalised = ((PIXELS / np.float32(255)) - shaped[0]) / shaped[1]
    for given in (PIXELS, PIXELS / 255, normalised, PIXELS.astype(np.int64), PIXELS.transpose(0, 2, 3, 1)):
        assert (pixels_for(given, IMAGE, mean, std) == PIXELS).all()
    assert pixels_for(PIXELS[:, :1].reshape(9, 24), Shape(1, 1, 24)).shape == (9, 1, 1, 24)
    for wrong in (normalised, PIXELS[:, :2], PIXELS.astype(np.int64) + 1, PIXELS[:0]):
        with pytest.raises(InputError, match=r"there are \d images of"):
            pixels_for(wrong, IMAGE)


def test_loose_folders_and_npy_files(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", PIXELS)
    found = open_samples(str(tmp_path / "images.npy"), None, 4)
    assert found is not None and found.labels is None and len(found) == 4
    assert found.source is not None and found.source.spec.endswith("images.npy")
    folder = tmp_path / "loose"
    folder.mkdir()
    for number in range(3):
        size = (20 + number, 10)
        Image.fromarray(np.full((*size[::-1], 3), 40 * number, np.uint8)).save(folder / f"{number}.png")
    fitted = open_samples(str(folder), IMAGE, 0)
    assert (
        fitted is not None and fitted.images.shape == (3, *IMAGE) and fitted.images[:, 0, 0, 0].tolist() == [0, 40, 80]
    )
    with pytest.raises(InputError, match="several sizes"):
        open_samples(str(folder), None, 0)
    (folder / "bad.png").write_bytes(b"no picture")
    told: list[str] = []
    with pytest.raises(InputError, match=r"bad\.png"):
        open_samples(str(folder), IMAGE, 0)
    assert len(open_samples(str(folder), IMAGE, 0, skip_bad=True, left_out=told.append) or ()) == 3
    assert "bad.png" in told[0]
    (folder / "class").mkdir()
    assert open_samples(str(folder), IMAGE, 0) is None and open_samples("digits", IMAGE, 0) is None


def test_what_is_not_data_is_refused() -> None:
    with pytest.raises(InputError, match="int is not data"):
        samples_of(3, 5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="it is empty"):
        samples_of(TensorDataset(torch.zeros(0, 3, 4, 6)), 5)
