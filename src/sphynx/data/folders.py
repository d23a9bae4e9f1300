"""Data sets that are folders of image files: class folders (with or without splits) and Tiny-ImageNet's own layout."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from sphynx.data.decode import decode_all
from sphynx.data.groups import group_numbers
from sphynx.data.image_files import NOTHING, READ, LeftOut, describe_formats, find_images
from sphynx.data.images import Data, ImageSet, make_data, rows_of
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
    left_out: LeftOut = NOTHING
    groups: Tensor | None = None

    def decoded(self, size: int | None, skip_bad: bool = False) -> tuple[ImageSet, LeftOut]:
        found = decode_all(self.files, lambda index: str(self.files[index]), size=size, skip_bad=skip_bad)
        labels = torch.tensor([self.labels[index] for index in found.kept], dtype=torch.int64)
        groups = rows_of(self.groups, torch.tensor(found.kept, dtype=torch.int64))
        return ImageSet(found.images, labels, self.class_names, groups), self.left_out + LeftOut(found.bad)


def list_classes(folder: Path, class_names: tuple[str, ...] | None = None, groups: str | None = None) -> Listing:
    """CLASS/**/*.png and the like; classes are the sorted folder names, or those of the training split. `groups` is the
    rule by which images belong together (`data.groups`)."""
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
    passed_over: Counter[str] = Counter()
    for label, name in enumerate(names):
        if class_names is not None and name not in found:
            continue  # a class without test images can still be trained on
        inside, others = find_images(folder / name)
        if not inside:
            only = f", only {describe_formats(others)}: {READ}" if others else ""
            raise InputError(
                f"the class folder contains no images{only}",
                where=str(folder / name),
                remedy="Remove the folder, or put PNG or JPEG files into it.",
            )
        passed_over += others
        files += inside
        labels += [label] * len(inside)
    numbers = None if groups is None else group_numbers(groups, files, folder)
    return Listing(tuple(files), tuple(labels), names, LeftOut(formats=dict(passed_over)), numbers)


def list_splits(folder: Path, groups: str | None = None) -> tuple[Listing, Listing] | None:
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
    listing = list_classes(train, groups=groups)
    beside = sorted(path.name for path in folder.iterdir() if path.is_dir() and path not in (train, test))
    unused = LeftOut(folders=tuple(name for name in beside if not name.startswith(".")))
    return replace(listing, left_out=listing.left_out + unused), list_classes(test, listing.class_names, groups)


def open_image_folder(
    folder: Path, size: int | None = None, *, skip_bad: bool = False, groups: str | None = None
) -> Data:
    splits = list_splits(folder, groups)
    if splits is not None:
        return _open(folder.name, *splits, size, skip_bad, where=str(folder))
    everything, left_out = list_classes(folder, groups=groups).decoded(size, skip_bad)
    train, test = everything.split(TEST_FRACTION, TEST_SEED)
    more = (
        f"A fifth of each class becomes the test set: give at least {round(1 / TEST_FRACTION)} images of each class, "
        f"or test images of their own ({folder}/train/CLASS, {folder}/test/CLASS)."
    )
    return make_data(folder.name, train, test, where=str(folder), left_out=left_out, more=more)


def _open(name: str, train: Listing, test: Listing, size: int | None, skip_bad: bool, *, where: str) -> Data:
    (trained, of_train), (tested, of_test) = train.decoded(size, skip_bad), test.decoded(size, skip_bad)
    return make_data(name, trained, tested, where=where, left_out=of_train + of_test)


def is_tiny_imagenet(folder: Path) -> bool:
    return (folder / "wnids.txt").is_file() and (folder / "val" / "val_annotations.txt").is_file()


def open_tiny_imagenet(folder: Path, size: int | None = None, *, skip_bad: bool = False) -> Data:
    """train/WNID/images/*.JPEG and val/images with val_annotations.txt; its test split has no labels, val serves.

    Classes are in the order of their WordNet numbers, and called as words.txt calls them first, where it is there.
    """
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
            raise InputError(
                f"line {number} does not name a known class", where=str(annotations), remedy="Unpack it again."
            )
        files.append(folder / "val" / "images" / fields[0])
        labels.append(label_of[fields[1]])
    names = _in_words(train.class_names, folder / "words.txt")
    train = replace(train, class_names=names)
    test = Listing(tuple(files), tuple(labels), names)
    return _open("tiny-imagenet", train, test, size, skip_bad, where=str(folder))


def _in_words(wnids: tuple[str, ...], file: Path) -> tuple[str, ...]:
    if not file.is_file():
        return wnids
    words = dict(line.split("\t", 1) for line in file.read_text().splitlines() if "\t" in line)
    names = tuple(words.get(wnid, wnid).split(",")[0].strip() for wnid in wnids)
    return names if len(set(names)) == len(names) else wnids


def _first_folder(folder: Path, names: tuple[str, ...]) -> Path | None:
    """Find the first of `names`. Train/ and TRAIN/ count too: as classes they would be learned apart, silently."""
    found = {path.name.lower(): path for path in sorted(folder.iterdir()) if path.is_dir()}
    return next((found[name] for name in names if name in found), None)
