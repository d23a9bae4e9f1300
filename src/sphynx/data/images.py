"""Labelled images in memory, and their explicit, seeded splits.

Search and placement work on the two `halves` of the training images, selection on what `split` held out of them; the
test images are touched once, at the end. Both splits are stratified by class: image folders come sorted by class. Where
images have groups, such as patients (`data.groups`), they are split by whole groups.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor

from sphynx.data.groups import split_by_groups
from sphynx.data.image_files import NOTHING, LeftOut
from sphynx.data.source import DataSource
from sphynx.errors import InputError, join_faults
from sphynx.record import fingerprint

Statistics = tuple[float, ...]  # one number per channel, in units of the full pixel range (0 .. 1)


@dataclass(frozen=True, eq=False, repr=False)
class ImageSet:
    images: Tensor  # uint8 [n, channels, height, width]
    labels: Tensor  # int64 [n]
    class_names: tuple[str, ...]
    groups: Tensor | None = None  # int64 [n], where it is known which images belong together

    def __post_init__(self) -> None:
        if self.groups is not None and self.groups.shape != self.labels.shape:
            raise ValueError("groups must be one per image")
        if self.images.dtype != torch.uint8 or self.images.ndim != 4:
            raise ValueError(f"images must be uint8 [n, c, h, w], not {self.images.dtype} {tuple(self.images.shape)}")
        if self.labels.dtype != torch.int64 or self.labels.shape != self.images.shape[:1]:
            raise ValueError("labels must be int64, one per image")

    def __repr__(self) -> str:
        return f"ImageSet({len(self):,} images of {'x'.join(map(str, self.shape))})"

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        _, channels, height, width = self.images.shape
        return channels, height, width

    def subset(self, indices: Tensor) -> ImageSet:
        where = indices.to(self.images.device)
        return ImageSet(self.images[where], self.labels[where], self.class_names, rows_of(self.groups, indices))

    def halves(self, seed: int) -> tuple[ImageSet, ImageSet]:
        return self.split(0.5, seed)

    def split(self, fraction: float, seed: int) -> tuple[ImageSet, ImageSet]:
        """The second set holds `fraction` of each class (up to one image, or one group), the first the rest."""
        rest, held_out = split_indices(self.labels, self.groups, fraction, seed)
        return self.subset(rest), self.subset(held_out)

    def sample(self, count: int, seed: int = 0) -> ImageSet:
        """A random sample of `count` images; all of them where `count` is 0 or there are no more."""
        if not 0 < count < len(self):
            return self
        drawn = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))[:count]
        return self.subset(drawn)

    def to(self, device: torch.device | str) -> ImageSet:
        return replace(self, images=self.images.to(device), labels=self.labels.to(device))

    def digest(self) -> str:
        """A digest of every pixel, label and group, in their order."""
        digest = hashlib.sha256(repr(tuple(self.images.shape)).encode())
        for tensor in (self.images, self.labels, *(() if self.groups is None else (self.groups,))):
            digest.update(tensor.cpu().contiguous().numpy().data)
        return digest.hexdigest()

    def statistics(self) -> tuple[Statistics, Statistics]:
        """Mean and standard deviation of each channel, exactly: from a histogram of the 256 values."""
        means, deviations = [], []
        values = torch.arange(256, dtype=torch.float64) / 255
        for channel in range(self.shape[0]):
            counts = torch.bincount(self.images[:, channel].flatten(), minlength=256).cpu().double()
            mean = float((counts * values).sum() / counts.sum())
            variance = float((counts * (values - mean) ** 2).sum() / counts.sum())
            means.append(mean)
            deviations.append(max(variance**0.5, 1 / 255))  # a constant channel must not divide by zero
        return tuple(means), tuple(deviations)


class AnyImages(Protocol):
    """The interface that images in memory and images streamed from a folder have in common."""

    @property
    def labels(self) -> Tensor: ...
    @property
    def class_names(self) -> tuple[str, ...]: ...
    @property
    def groups(self) -> Tensor | None: ...
    @property
    def shape(self) -> tuple[int, int, int]: ...
    def __len__(self) -> int: ...
    def digest(self) -> str: ...


class DataFace:
    """A data set, opened. `mirrored` says whether a mirrored image keeps its class (digits do not).

    `picture_part` is how much of a picture file's middle becomes an image that is evaluated (`picture.cover`).
    """

    picture_part: ClassVar[float] = 1.0
    name: str
    train: AnyImages
    test: AnyImages
    mean: Statistics
    std: Statistics
    mirrored: bool
    source: DataSource | None
    left_out: LeftOut

    def __repr__(self) -> str:
        """One line, without pixels."""
        size, images = (
            "x".join(map(str, self.image)),
            f"{len(self.train):,} training and {len(self.test):,} test images",
        )
        return f"{type(self).__name__}({self.name!r}: {images} of {size}, {self.classes} classes)"

    @property
    def image(self) -> tuple[int, int, int]:
        """Channels, height, width."""
        return self.train.shape

    @property
    def classes(self) -> int:
        return len(self.train.class_names)

    def identity(self) -> dict[str, object]:
        """The facts that a run records of its data: enough to tell another data set apart."""
        return {
            "name": self.name,
            "train": len(self.train),
            "test": len(self.test),
            "image": list(self.train.shape),
            "classes": self.classes,
            "mean": [round(value, 6) for value in self.mean],
            **({} if self.train.groups is None else {"groups": len(self.train.groups.unique())}),
        }

    @property
    def shared_groups(self) -> int:
        """Count the groups that have both training and test images."""
        if self.train.groups is None or self.test.groups is None:
            return 0
        return len(np.intersect1d(self.train.groups.cpu().numpy(), self.test.groups.cpu().numpy()))

    @cached_property
    def content(self) -> str:
        """A hash of what `identity` may not tell apart: a picture moved to another class, another order of classes."""
        return fingerprint(self.train.digest(), self.test.digest(), self.train.class_names)


@dataclass(frozen=True, eq=False, repr=False)
class Data(DataFace):
    """A data set in memory.

    >>> data: sphynx.Data = sphynx.open_data("digits")
    >>> data.classes, len(data.test)
    (10, 359)
    """

    name: str
    train: ImageSet
    test: ImageSet
    mean: Statistics
    std: Statistics
    mirrored: bool = True
    source: DataSource | None = None
    left_out: LeftOut = NOTHING


def make_data(
    name: str,
    train: ImageSet,
    test: ImageSet,
    *,
    where: str,
    mirrored: bool = True,
    left_out: LeftOut = NOTHING,
    more: str = "Add images to both splits.",
) -> Data:
    """Normalises by the training images and refuses sets that cannot be trained on."""
    train, test = _colour(train, test), _colour(test, train)
    refuse_unusable(train, test, where=where, more=more)
    mean, std = train.statistics()
    return Data(name, train, test, mean, std, mirrored=mirrored, left_out=left_out)


def refuse_unusable(train: AnyImages, test: AnyImages, *, where: str, more: str = "Add images to both splits.") -> None:
    """Sets that cannot be trained on; `more` says how to get images into a split that has none."""
    faults: dict[str, str] = {}  # and what helps
    if len(train.class_names) == 1:
        faults["there is only one class"] = "Add a second class, in a folder of its own."
    if not len(train):
        faults["there are no training images"] = more
    elif empty := classes_without_images(train):
        faults[f"no training image is of class {some_of(empty)}"] = "Add images of it, or remove its folder."
    if not len(test):
        faults["there are no test images"] = more
    if not faults and train.shape != test.shape:
        unequal = f"training images are {train.shape} and test images {test.shape} (channels, height, width)"
        faults[unequal] = "Give `image_size=N` to resize all images to N x N."
    if faults:
        remedies = dict.fromkeys(faults.values())  # each once
        raise InputError(join_faults(list(faults)), where=where, remedy=" ".join(remedies))


def classes_without_images(images: AnyImages) -> list[str]:
    counts = torch.bincount(images.labels.cpu(), minlength=len(images.class_names))
    return [name for name, count in zip(images.class_names, counts.tolist(), strict=True) if not count]


def some_of(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")


def _colour(images: ImageSet, other: ImageSet) -> ImageSet:
    """Grey images become colour images where those of the other split are."""
    if images.shape[0] == 1 and other.shape[0] == 3:
        return replace(images, images=images.images.expand(-1, 3, -1, -1).contiguous())
    return images


def rows_of(groups: Tensor | None, indices: Tensor) -> Tensor | None:
    return None if groups is None else groups[indices.to(groups.device)]


def split_indices(labels: Tensor, groups: Tensor | None, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Two ascending index lists, the second of about `fraction` of each class: by whole groups where there are any."""
    if groups is None:
        return stratified(labels, fraction, seed)
    return split_by_groups(labels, groups, fraction, seed)


def held_out_count(images: int, fraction: float) -> int:
    """Return how many of `images` images `stratified` holds out."""
    return math.floor(images * fraction + 1e-9)


def stratified(labels: Tensor, fraction: float, seed: int) -> tuple[Tensor, Tensor]:
    """Two ascending index lists; the second has floor(n * fraction) images, spread evenly over the classes."""
    if not 0 <= fraction <= 1:
        raise ValueError(f"a fraction must be between 0 and 1, not {fraction}")
    order = np.random.default_rng(seed).permutation(len(labels))
    by_class = order[np.argsort(labels.cpu().numpy()[order], kind="stable")]
    # Walking through the images class by class, one goes to the second list each time n * fraction gains a whole.
    gains = np.floor(np.arange(len(labels) + 1) * fraction + 1e-9)
    taken = np.diff(gains) > 0
    return torch.from_numpy(np.sort(by_class[~taken])), torch.from_numpy(np.sort(by_class[taken]))
