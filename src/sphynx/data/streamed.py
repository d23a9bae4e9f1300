"""Image folders too large for memory (ImageNet): files are decoded by worker processes while the device trains.

Each image's random crop depends on (seed, epoch, image) only, so that an epoch continues from a position bit for bit,
whatever the number of workers. Cutout and mixup run on the device, as for images in memory.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from sphynx.data.batches import Augmentation, BatchSettings, EpochBatches, Normalise, cut_out
from sphynx.data.decode import SKIP, find_bad, require_memory
from sphynx.data.folders import Listing, list_splits
from sphynx.data.image_files import NOTHING, BadFile, LeftOut, listed
from sphynx.data.images import DataFace, ImageSet, Statistics, refuse_unusable, rows_of, split_indices
from sphynx.data.picture import cover, read_upright
from sphynx.data.source import DataSource
from sphynx.errors import InputError

# The usual ImageNet crop: an area of 8 % to all of the image, sides in 3:4 to 4:3; for evaluation the middle 7/8.
AREA, RATIO, MIDDLE = (0.08, 1.0), (3 / 4, 4 / 3), 7 / 8
STATISTICS_IMAGES = 2000
_TRIES = 10


@dataclass(frozen=True, eq=False, repr=False)
class StreamedSet:
    files: tuple[Path, ...]
    labels: Tensor
    class_names: tuple[str, ...]
    size: int
    groups: Tensor | None = None

    def __repr__(self) -> str:
        return f"StreamedSet({len(self):,} images of {'x'.join(map(str, self.shape))})"

    def __len__(self) -> int:
        return len(self.files)

    @property
    def shape(self) -> tuple[int, int, int]:
        return 3, self.size, self.size

    def subset(self, indices: Tensor) -> StreamedSet:
        files = tuple(self.files[index] for index in indices.tolist())
        return StreamedSet(files, self.labels[indices], self.class_names, self.size, rows_of(self.groups, indices))

    def split(self, fraction: float, seed: int) -> tuple[StreamedSet, StreamedSet]:
        rest, held_out = split_indices(self.labels, self.groups, fraction, seed)
        return self.subset(rest), self.subset(held_out)

    def halves(self, seed: int) -> tuple[StreamedSet, StreamedSet]:
        return self.split(0.5, seed)

    def digest(self) -> str:
        """A digest of every file's name and label, in their order; the files are not read."""
        names = "\0".join(f"{file.parent.name}/{file.name}" for file in self.files)
        digest = hashlib.sha256(names.encode(errors="surrogateescape"))
        digest.update(self.labels.contiguous().numpy().data)
        if self.groups is not None:
            digest.update(self.groups.contiguous().numpy().data)
        return digest.hexdigest()

    def sample(self, count: int, seed: int = 0) -> ImageSet:
        """A random sample of `count` images, the middle of each, in memory: to calibrate and to check with."""
        drawn = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))[:count]
        chosen = self.subset(drawn.sort().values)
        numbers = [[(0, index)] for index in range(len(chosen))]
        loaded = list(_loader(_Files(chosen, None, 0), numbers, 0, torch.device("cpu")))
        return ImageSet(torch.cat([pixels for pixels, _ in loaded]), chosen.labels, self.class_names)


@dataclass(frozen=True, eq=False, repr=False)
class StreamedData(DataFace):
    picture_part: ClassVar[float] = MIDDLE
    name: str
    train: StreamedSet
    test: StreamedSet
    mean: Statistics
    std: Statistics
    mirrored: bool = True
    source: DataSource | None = None
    left_out: LeftOut = NOTHING


def open_stream(path: Path, size: int, *, skip_bad: bool = False, groups: str | None = None) -> StreamedData:
    """train/ and val/ (or test/) with class folders; normalised by a sample of the training images.

    `skip_bad` reads every file once, before the first epoch, and leaves out what cannot be read.
    """
    splits = list_splits(path, groups)
    if splits is None:
        raise InputError("there is no train/ folder", where=str(path), remedy="A streamed set needs train/ and val/.")
    readable = [_readable(listing) for listing in splits] if skip_bad else list(splits)
    train, test = (_stream(listing, size) for listing in readable)
    refuse_unusable(train, test, where=str(path))
    require_memory(min(STATISTICS_IMAGES, len(train)), math.prod(train.shape), f"`image_size={size}`")
    mean, std = train.sample(STATISTICS_IMAGES).statistics()
    return StreamedData(path.name, train, test, mean, std, left_out=readable[0].left_out + readable[1].left_out)


def _readable(listing: Listing) -> Listing:
    bad = find_bad(listing.files)
    kept = [index for index in range(len(listing.files)) if index not in bad]
    return Listing(
        tuple(listing.files[index] for index in kept),
        tuple(listing.labels[index] for index in kept),
        listing.class_names,
        listing.left_out + LeftOut(tuple(bad.values())),
        rows_of(listing.groups, torch.tensor(kept, dtype=torch.int64)),
    )


def _stream(listing: Listing, size: int) -> StreamedSet:
    labels = torch.tensor(listing.labels, dtype=torch.int64)
    return StreamedSet(listing.files, labels, listing.class_names, size, listing.groups)


class StreamedBatches(EpochBatches):
    """Batches read from files, otherwise as `Batches`. `crop` means the random resized crop here."""

    draws_on_host = True  # the files are chosen there

    def __init__(
        self, images: StreamedSet, batch_size: int, *, workers: int | None = None, **settings: Unpack[BatchSettings]
    ) -> None:
        super().__init__(images, batch_size, **settings)
        self.files = images
        self.workers = default_workers() if workers is None else workers

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        draws = self.current_draws()
        epoch = self.epoch % self.period if self.period else self.epoch
        rows = [self.rows(batch) for batch in range(self.position, len(self))]
        wanted = [[(epoch, index) for index in draws.order[row].tolist()] for row in rows]
        loader = _loader(_Files(self.files, self.augmentation, self.seed), wanted, self.workers, self.device)
        for row, (pixels, labels) in zip(rows, loader, strict=True):
            batch = self.position
            self.advance()
            pixels = self.stroked(pixels.to(self.device, non_blocking=True), draws, self.places(batch))
            x = self.normalise(self.warped(pixels, draws, row))
            if self.augmentation.cutout:
                x = cut_out(x, draws.centres[row].to(self.device), self.augmentation.cutout)
            yield self.mixed(x, labels.to(self.device, non_blocking=True), draws.mixes[batch])


def stream_plain(
    images: StreamedSet, batch_size: int, *, device: torch.device | str, mean: Statistics, std: Statistics
) -> Iterator[tuple[Tensor, Tensor]]:
    """All images once, in order, the middle of each: for evaluation."""
    normalise = Normalise(mean, std, torch.device(device))
    numbers = range(len(images))
    wanted = [[(0, i) for i in numbers[start : start + batch_size]] for start in range(0, len(images), batch_size)]
    for pixels, labels in _loader(_Files(images, None, 0), wanted, default_workers(), torch.device(device)):
        yield normalise(pixels.to(device)), labels.to(device)


def default_workers() -> int:
    return min(16, os.cpu_count() or 1)


Sample = tuple[Tensor, int, BadFile | None]


class _Files(Dataset[Sample]):
    """(epoch, index) -> pixels, label, fault. A fault travels as text, since an exception would lose its remedy."""

    def __init__(self, images: StreamedSet, augmentation: Augmentation | None, seed: int) -> None:
        self.images = images
        self.augmentation = augmentation
        self.seed = seed

    def __getitem__(self, key: tuple[int, int]) -> Sample:
        epoch, index = key
        file, label = self.images.files[index], int(self.images.labels[index])
        try:
            picture = read_upright(file, str(file)).convert("RGB")
        except InputError as error:
            return torch.zeros(self.images.shape, dtype=torch.uint8), label, BadFile(error.where, error.what)
        if self.augmentation is None:
            picture = cover(picture, self.images.size, self.images.size, MIDDLE)
        else:
            picture = _augment(picture, self.images.size, self.augmentation, [self.seed, epoch, index])
        return torch.from_numpy(np.array(picture).transpose(2, 0, 1)), label, None


def _augment(picture: Image.Image, size: int, augmentation: Augmentation, seed: list[int]) -> Image.Image:
    random = np.random.default_rng(seed)
    picture = random_resized_crop(picture, size, random) if augmentation.crop else cover(picture, size, size, MIDDLE)
    if augmentation.flip and random.random() < 0.5:
        picture = picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return picture


def random_resized_crop(picture: Image.Image, size: int, random: np.random.Generator) -> Image.Image:
    width, height = picture.size
    for _ in range(_TRIES):
        area = width * height * random.uniform(*AREA)
        ratio = math.exp(random.uniform(math.log(RATIO[0]), math.log(RATIO[1])))
        wide, high = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < wide <= width and 0 < high <= height:
            left, top = int(random.integers(width - wide + 1)), int(random.integers(height - high + 1))
            box = (left, top, left + wide, top + high)
            return picture.resize((size, size), Image.Resampling.BILINEAR, box=box)
    return cover(picture, size, size)


def _loader(
    files: _Files, wanted: Sequence[list[tuple[int, int]]], workers: int, device: torch.device
) -> Iterator[tuple[Tensor, Tensor]]:
    loader: DataLoader[Any] = DataLoader(
        files,
        batch_sampler=wanted,
        num_workers=workers,
        collate_fn=_collate,
        pin_memory=device.type == "cuda",
    )
    for pixels, labels, faults in loader:
        if faults:
            if len(faults) == 1:
                raise InputError(faults[0].why, where=faults[0].name, remedy=SKIP)
            raise InputError(f"{len(faults)} images of a batch cannot be read:\n{listed(faults)}", remedy=SKIP)
        yield pixels, labels


def _collate(samples: list[Sample]) -> tuple[Tensor, Tensor, list[BadFile]]:
    pixels, labels, faults = zip(*samples, strict=True)
    return torch.stack(pixels), torch.tensor(labels), [fault for fault in faults if fault is not None]
