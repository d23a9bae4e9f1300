"""Data sets that are folders of image files: class folders (with or without splits) and Tiny-ImageNet's own layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch

from sphynx.data.decode import decode_all, is_image
from sphynx.data.images import Data, ImageSet, make_data
from sphynx.errors import InputError

TRAIN_NAMES = ("train", "training")
TEST_NAMES = ("test", "testing", "val", "valid", "validation")
TEST_FRACTION, TEST_SEED = 0.2, 0  # where one folder holds everything


@dataclass(frozen=True)
class Listing:
    """Image files with their labels, not yet decoded."""

    files: tuple[Path, ...]
    labels: tuple[int, ...]
    class_names: tuple[str, ...]

    def decoded(self, size: int | None) -> ImageSet:
        images = decode_all(self.files, lambda index: str(self.files[index]), size=size)
        return ImageSet(images, torch.tensor(self.labels, dtype=torch.int64), self.class_names)


def list_classes(folder: Path, class_names: tuple[str, ...] | None = None) -> Listing:
    """CLASS/**/*.png and the like; classes are the sorted folder names, or those of the training split."""
    found = tuple(sorted(path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")))
    names = found if class_names is None else class_names
    strange = sorted(set(found) - set(names))
    if strange:
        raise InputError(
            f"class {strange[0]} has no folder among the training images",
            where=str(folder / strange[0]),
            remedy="Both splits need the same class folders.",
        )
    files: list[Path] = []
    labels: list[int] = []
    for label, name in enumerate(names):
        if class_names is not None and name not in found:
            continue  # a class without test images can still be trained on
        inside = sorted(path for path in (folder / name).rglob("*") if is_image(path.relative_to(folder)))
        if not inside:
            raise InputError(
                "the class folder holds no images",
                where=str(folder / name),
                remedy="Remove the folder, or put PNG or JPEG files into it.",
            )
        files += inside
        labels += [label] * len(inside)
    return Listing(tuple(files), tuple(labels), names)


def list_splits(folder: Path) -> tuple[Listing, Listing] | None:
    """The train and the test listing of train/ + test/ (or val/); None where there is no train folder."""
    train = _first_folder(folder, TRAIN_NAMES)
    if train is None:
        return None
    test = _first_folder(folder, TEST_NAMES)
    if test is None:
        raise InputError(
            f"there is {train.name}/ but none of {', '.join(name + '/' for name in TEST_NAMES)}",
            where=str(folder),
            remedy="Add a test folder, or give the training folder itself to split it by a seed.",
        )
    listing = list_classes(train)
    return listing, list_classes(test, listing.class_names)


def open_image_folder(folder: Path, size: int | None = None) -> Data:
    splits = list_splits(folder)
    if splits is not None:
        return make_data(folder.name, splits[0].decoded(size), splits[1].decoded(size), where=str(folder))
    train, test = list_classes(folder).decoded(size).split(TEST_FRACTION, TEST_SEED)
    return make_data(folder.name, train, test, where=str(folder))


def is_tiny_imagenet(folder: Path) -> bool:
    return (folder / "wnids.txt").is_file() and (folder / "val" / "val_annotations.txt").is_file()


def open_tiny_imagenet(folder: Path, size: int | None = None) -> Data:
    """train/WNID/images/*.JPEG and val/images with val_annotations.txt; its test split has no labels, val serves."""
    wnids = tuple((folder / "wnids.txt").read_text().split())
    train = list_classes(folder / "train")
    if set(train.class_names) != set(wnids):
        missing = sorted(set(wnids) ^ set(train.class_names))
        raise InputError(
            f"wnids.txt and train/ disagree on class {missing[0]}", where=str(folder), remedy="Unpack it again."
        )
    label_of = {name: label for label, name in enumerate(train.class_names)}
    annotations = folder / "val" / "val_annotations.txt"
    files, labels = [], []
    for number, line in enumerate(annotations.read_text().splitlines(), 1):
        fields = line.split("\t")
        if len(fields) < 2 or fields[1] not in label_of:
            raise InputError(f"line {number} names no known class", where=str(annotations), remedy="Unpack it again.")
        files.append(folder / "val" / "images" / fields[0])
        labels.append(label_of[fields[1]])
    test = Listing(tuple(files), tuple(labels), train.class_names)
    return make_data("tiny-imagenet", train.decoded(size), test.decoded(size), where=str(folder))


def _first_folder(folder: Path, names: tuple[str, ...]) -> Path | None:
    """By the order of `names`. Train/ and TRAIN/ count too: as classes they would be learned apart, silently."""
    found = {path.name.lower(): path for path in sorted(folder.iterdir()) if path.is_dir()}
    return next((found[name] for name in names if name in found), None)
