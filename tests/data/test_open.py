"""Every kind of data set opens to exactly the pixels that were written; every kind of damage is named."""

import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from sphynx.data.open import open_data
from sphynx.data.source import DataSource
from sphynx.errors import InputError
from tests.data.layouts import (
    pixels,
    tar_up,
    write_cifar,
    write_classes,
    write_fashion,
    write_idx,
    write_image,
    write_packed,
    write_tiny_imagenet,
)


def test_digits_are_scikit_learns() -> None:
    from sklearn.datasets import load_digits

    data = open_data("digits")
    assert data.train.shape == (1, 8, 8) and data.classes == 10 and not data.mirrored
    assert len(data.train) + len(data.test) == 1797
    theirs = np.sort(load_digits().images.reshape(1797, -1), axis=0)
    ours = torch.cat([data.train.images, data.test.images]).reshape(1797, -1).numpy()
    np.testing.assert_array_equal(np.sort(np.round(ours * (16 / 255)), axis=0), theirs)


def test_a_size_that_is_not_heeded_is_refused() -> None:
    assert open_data("digits", image_size=8).train.shape == (1, 8, 8)
    with pytest.raises(InputError, match="its images are 8x8: only those of folders are resized"):
        open_data("digits", image_size=32)


def test_a_folder_called_digits_is_not_recorded_for_the_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and compiled programs are often called so."""
    (tmp_path / "digits").mkdir()
    monkeypatch.chdir(tmp_path)
    assert open_data("digits").source == DataSource("digits")


@pytest.mark.parametrize("kind", ["cifar10", "cifar100"])
def test_cifar_archive_and_folder(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / ("cifar-10-batches-py" if kind == "cifar10" else "cifar-100-python")
    written = write_cifar(folder, kind)
    parts = list(written.values())
    for path in (folder, tar_up(folder, tmp_path / f"{kind}.tar.gz")):
        data = open_data(str(path))
        assert data.name == kind
        assert data.train.class_names == ("cat", "dog", "owl")
        np.testing.assert_array_equal(data.train.images, np.concatenate(parts[:-1]))
        np.testing.assert_array_equal(data.test.images, parts[-1])
        assert data.test.labels.tolist() == [0, 1, 2, 0, 1, 2]


def test_a_truncated_archive_is_named(tmp_path: Path) -> None:
    write_cifar(tmp_path / "cifar-100-python", "cifar100")
    archive = tar_up(tmp_path / "cifar-100-python", tmp_path / "c.tar.gz")
    content = archive.read_bytes()
    for kept in (0, 5, len(content) // 2, len(content) - 9):
        archive.write_bytes(content[:kept])
        with pytest.raises(InputError, match=r"c\.tar\.gz") as caught:
            open_data(str(archive))
        assert "sphynx data get" in caught.value.remedy


def test_a_doctored_pickle_runs_nothing(tmp_path: Path) -> None:
    write_cifar(tmp_path / "c", "cifar100")
    marker = tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {marker}",)

    (tmp_path / "c" / "train").write_bytes(pickle.dumps({b"data": Evil()}, protocol=2))
    with pytest.raises(InputError, match="train: it is not a CIFAR data file"):
        open_data(str(tmp_path / "c"))
    assert not marker.exists()


def test_tiny_imagenet(tmp_path: Path) -> None:
    write_tiny_imagenet(tmp_path / "tiny")
    data = open_data(str(tmp_path / "tiny"))
    assert data.name == "tiny-imagenet" and data.train.shape == data.test.shape == (3, 8, 8)
    assert data.train.class_names == ("n01", "n02") and data.train.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert data.test.labels.tolist() == [0, 1]
    first = np.asarray(Image.open(tmp_path / "tiny/train/n01/images/n01_0.JPEG"))
    np.testing.assert_array_equal(data.train.images[0].permute(1, 2, 0), first)
    (tmp_path / "tiny/val/val_annotations.txt").write_text("val_0.JPEG\tn99\t0\t0\t1\t1\n")
    with pytest.raises(InputError, match=r"val_annotations.txt: line 1"):
        open_data(str(tmp_path / "tiny"))


def test_tiny_imagenets_classes_are_called_by_words_and_stay_in_order(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    write_tiny_imagenet(folder)
    assert open_data(str(folder)).train.class_names == ("n01", "n02")
    (folder / "words.txt").write_text("n02\tant, emmet, pismire\nn03\tapple\nn01\tgoldfish, Carassius auratus\n")
    data = open_data(str(folder))
    assert data.train.class_names == data.test.class_names == ("goldfish", "ant")
    (folder / "words.txt").write_text("n01\tcrane\nn02\tcrane, derrick\n")
    assert open_data(str(folder)).train.class_names == ("n01", "n02")


@pytest.mark.parametrize(("train_name", "test_name"), [("train", "test"), ("train", "val"), ("Train", "TEST")])
def test_image_folder_with_splits(train_name: str, test_name: str, tmp_path: Path) -> None:
    write_classes(tmp_path / train_name, n=4)
    write_classes(tmp_path / test_name, n=2)
    data = open_data(str(tmp_path))
    assert (len(data.train), len(data.test)) == (8, 4)
    np.testing.assert_array_equal(data.train.images[4].permute(1, 2, 0), pixels(4, (6, 6, 3), 1)[0])


def test_one_image_folder_is_split_by_a_seed(tmp_path: Path) -> None:
    write_classes(tmp_path, ("a", "b", "c"), n=10)
    data = open_data(str(tmp_path))
    assert torch.bincount(data.test.labels).tolist() == [2, 2, 2]
    assert torch.equal(data.test.images, open_data(str(tmp_path)).test.images)


def test_hidden_folders_are_passed_over_also_inside_a_class(tmp_path: Path) -> None:
    write_classes(tmp_path, n=5)
    for hidden in (tmp_path / ".cache", tmp_path / "ant" / ".ipynb_checkpoints"):
        write_image(hidden / "0-checkpoint.png", pixels(1, (6, 6, 3))[0])
    data = open_data(str(tmp_path))
    assert (len(data.train) + len(data.test), data.classes) == (10, 2)


def test_grey_images_stay_grey(tmp_path: Path) -> None:
    for number, name in enumerate(("a", "b")):
        for index, array in enumerate(pixels(5, (4, 4), number)):
            write_image(tmp_path / name / f"{index}.png", array)
    assert open_data(str(tmp_path)).train.shape == (1, 4, 4)


def test_mixed_sizes_are_named_and_can_be_resized(tmp_path: Path) -> None:
    write_classes(tmp_path)
    odd = write_image(tmp_path / "bee" / "odd.png", pixels(1, (5, 9, 3))[0])
    with pytest.raises(InputError, match=r"odd\.png: the image is 9x5, but .*0\.png is 6x6"):
        open_data(str(tmp_path))
    data = open_data(str(tmp_path), image_size=4)
    assert data.train.shape == (3, 4, 4)
    odd.unlink()


def test_images_that_do_not_fit_the_memory_are_to_be_streamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_classes(tmp_path)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PHYS_PAGES": 1, "SC_PAGE_SIZE": 2000}[name])
    with pytest.raises(InputError, match=r"0\.png: 10 images of this size need") as caught:
        open_data(str(tmp_path))
    assert "`stream=True`" in caught.value.remedy


def test_an_image_size_that_does_not_fit_the_memory_is_refused_before_a_file_is_read(tmp_path: Path) -> None:
    write_classes(tmp_path)
    (tmp_path / "ant" / "0.png").write_bytes(b"not an image")
    with pytest.raises(InputError, match="`image_size=10000000`: 10 images of this size need") as caught:
        open_data(str(tmp_path), image_size=10_000_000)
    assert "smaller `image_size`" in caught.value.remedy


@pytest.mark.parametrize(
    ("classes", "n", "what", "remedy"),
    [
        (("ant",), 9, "there is only one class", "Add a second class, in a folder of its own."),
        (("ant", "bee"), 1, "there are no test images", "at least 5 images of each class"),
    ],
)
def test_the_remedy_is_for_what_is_missing(
    classes: tuple[str, ...], n: int, what: str, remedy: str, tmp_path: Path
) -> None:
    write_classes(tmp_path, classes, n=n)
    with pytest.raises(InputError, match=what) as caught:
        open_data(str(tmp_path))
    assert remedy in caught.value.remedy


def test_loose_pictures_belong_in_class_folders(tmp_path: Path) -> None:
    write_image(tmp_path / "cat.png", pixels(1, (6, 6, 3))[0])
    with pytest.raises(InputError, match="it holds 1 image, but no class folders") as caught:
        open_data(str(tmp_path))
    assert f"{tmp_path}/CLASS/cat.png" in caught.value.remedy


def test_a_corrupt_image_is_named(tmp_path: Path) -> None:
    write_classes(tmp_path)
    bad = tmp_path / "ant" / "3.png"
    for content in (b"", b"not an image", bad.read_bytes()[:60]):
        bad.write_bytes(content)
        reason = "the image cannot be read" if content else "the file is empty"
        with pytest.raises(InputError, match=rf"ant/3\.png: {reason}"):
            open_data(str(tmp_path))


def test_an_empty_class_is_named(tmp_path: Path) -> None:
    write_classes(tmp_path / "train")
    write_classes(tmp_path / "test")
    (tmp_path / "train" / "wasp").mkdir()
    with pytest.raises(InputError, match=r"train/wasp: the class folder contains no images"):
        open_data(str(tmp_path))


def test_a_test_class_without_training_images_is_named(tmp_path: Path) -> None:
    write_classes(tmp_path / "train")
    write_classes(tmp_path / "test", ("ant", "bee", "wasp"))
    with pytest.raises(InputError, match="test/wasp"):
        open_data(str(tmp_path))


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_idx_files(suffix: str, tmp_path: Path) -> None:
    written = write_fashion(tmp_path, suffix)
    data = open_data(str(tmp_path))
    np.testing.assert_array_equal(data.train.images[:, 0], written["train"])
    np.testing.assert_array_equal(data.test.images[:, 0], written["t10k"])
    assert data.test.labels.tolist() == [0, 1, 2, 3]


def test_damaged_idx_files_are_named(tmp_path: Path) -> None:
    write_fashion(tmp_path, ".gz")
    path = tmp_path / "train-images-idx3-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match=r"train-images-idx3-ubyte\.gz: the file is damaged"):
        open_data(str(tmp_path))
    write_idx(path, pixels(3, (28, 28)))
    with pytest.raises(InputError, match="3 train images have 8 labels"):
        open_data(str(tmp_path))
    write_idx(path, pixels(3, (28,)))
    with pytest.raises(InputError, match="not an idx file of bytes with 3 axes"):
        open_data(str(tmp_path))


def test_packed_parts(tmp_path: Path) -> None:
    write_classes(tmp_path / "images" / "train")
    write_classes(tmp_path / "images" / "test", n=2)
    write_packed(tmp_path / "packed", tmp_path / "images" / "train", "train", 0)
    write_packed(tmp_path / "packed", tmp_path / "images" / "train", "train", 1)
    write_packed(tmp_path / "packed", tmp_path / "images" / "test", "test")
    data, folder = open_data(str(tmp_path / "packed")), open_data(str(tmp_path / "images"))
    assert torch.equal(data.train.images, torch.cat([folder.train.images] * 2))
    assert torch.equal(data.test.images, folder.test.images) and torch.equal(data.test.labels, folder.test.labels)


def test_damaged_packed_parts_are_named(tmp_path: Path) -> None:
    write_classes(tmp_path / "images")
    part = write_packed(tmp_path / "packed", tmp_path / "images", "train")
    good = dict(np.load(part))
    damages: list[dict[str, object]] = [
        {"off": good["off"][::-1]},
        {"off": good["off"] * 2},
        {"y": good["y"][:-1]},
        {"y": good["y"] - 1},
        {"split": "nonsense"},
        {"blob": good["blob"].astype(np.int32)},
    ]
    for damage in damages:
        np.savez(part, **{**good, **damage})
        with pytest.raises(InputError, match=r"train0\.npz"):
            open_data(str(tmp_path / "packed"))
    np.savez(part, **{**good, "blob": np.zeros_like(good["blob"])})
    with pytest.raises(InputError, match=r"train0\.npz, image 0: the image cannot be read"):
        open_data(str(tmp_path / "packed"))
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(InputError, match=r"train0\.npz"):
        open_data(str(tmp_path / "packed"))


def test_what_is_no_data_says_what_would_be(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("hello")
    for spec in ("no-such-thing", str(tmp_path / "empty"), str(tmp_path / "file.txt")):
        with pytest.raises(InputError) as caught:
            open_data(spec)
        assert "CIFAR archive" in caught.value.remedy
