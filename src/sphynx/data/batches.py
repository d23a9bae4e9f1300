"""Batches, shuffled and augmented on the training device by whole-batch tensor operations.

All random numbers of an epoch (order, crops, mirrors, cutouts, mixes, strokes, warps) are drawn at its start on the
host from (seed, epoch) alone: the same on every device, and a position within an epoch is enough to continue it bit for
bit. With a `period` epoch e repeats epoch e mod period, so that what was computed of its batches once is used again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Required, TypedDict, Unpack

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from sphynx.data.images import AnyImages, ImageSet, Statistics
from sphynx.data.mixing import Mix, draw_mixes, mixed_images, mixed_values
from sphynx.data.trivial_augment import Strokes, draw_strokes, trivially_augmented
from sphynx.data.warp import draw_warps, warped
from sphynx.errors import InputError

_CHUNK_PIXELS = 1 << 24  # augmented at once (5,000 images of 3x32x32): few launches, little memory


@dataclass(frozen=True)
class Augmentation:
    crop: bool = False  # pad by an eighth of the size (4 at 32) with black, crop at a random place
    flip: bool = False  # mirror left-right with probability 1/2
    cutout: int = 0  # side of a square set to the mean, centred anywhere (so it may be cut by the border); 0 = none
    mixup: float = 0.0  # a: a batch is mixed with itself, shifted by one, with weight Beta(a, a); 0 = none
    cutmix: float = 0.0  # the probability that a batch is mixed by a box instead
    trivial: bool = False  # one random operation of TrivialAugment on each image
    rotate: float = 0.0  # degrees that an image is turned at most, either way
    scale: float = 0.0  # 0.1: it is made larger or smaller by up to 10 %
    contrast: float = 0.0  # 0.2: its contrast is raised or lowered by up to 20 %
    brightness: float = 0.0  # 0.1: a tenth of white is added or taken away at most

    @property
    def warps(self) -> bool:
        return max(self.rotate, self.scale, self.contrast, self.brightness) > 0

    @property
    def mixes(self) -> bool:
        return self.mixup > 0 or self.cutmix > 0


PLAIN = Augmentation()


@dataclass(frozen=True, eq=False)
class EpochDraws:
    """The random numbers of one epoch, one row per image in the order of use, one mix per batch."""

    order: Tensor  # int64 [n]
    offsets: Tensor  # int64 [n, 2]: row and column of the crop in the padded image
    mirrors: Tensor  # bool [n]
    centres: Tensor  # int64 [n, 2]: of the cutout
    mixes: tuple[Mix, ...]  # per batch
    strokes: Strokes | None
    warps: Tensor | None = None  # float32 [n, 4]

    def to(self, device: torch.device) -> EpochDraws:
        return EpochDraws(
            self.order.to(device),
            self.offsets.to(device),
            self.mirrors.to(device),
            self.centres.to(device),
            self.mixes,
            self.strokes,
            None if self.warps is None else self.warps.to(device),
        )


def draw_epoch(
    n: int,
    size: tuple[int, int],
    batches: int,
    augmentation: Augmentation,
    seed: int,
    epoch: int,
    balanced: NDArray[np.int64] | None = None,
) -> EpochDraws:
    """`balanced`: the labels, where each class is to be drawn equally often."""
    random = np.random.default_rng([seed, epoch])
    order = random.permutation(n) if balanced is None else balanced_order(random, balanced)
    offsets = random.integers(0, [2 * padding(length) + 1 for length in size], size=(n, 2))
    mirrors = random.random(n) < 0.5
    centres = random.integers(0, size, size=(n, 2))
    mixes = draw_mixes(random, batches, size, augmentation.mixup, augmentation.cutmix)
    strokes = draw_strokes(random, n) if augmentation.trivial else None
    limits = (augmentation.rotate, augmentation.scale, augmentation.contrast, augmentation.brightness)
    warps = draw_warps(random, n, *limits) if augmentation.warps else None
    return EpochDraws(
        torch.from_numpy(order),
        torch.from_numpy(offsets),
        torch.from_numpy(mirrors),
        torch.from_numpy(centres),
        mixes,
        strokes,
        warps,
    )


def balanced_order(random: np.random.Generator, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """As many images as there are, each class as often as any other (up to one): rare ones come again and again, none a
    second time before all others of its class came, and some of the frequent ones wait for another epoch."""
    kinds = random.permutation(np.unique(labels))
    order = []
    for place, kind in enumerate(kinds):
        own = np.flatnonzero(labels == kind)
        wanted = len(labels) // len(kinds) + (place < len(labels) % len(kinds))
        rounds = [random.permutation(own) for _ in range(-(-wanted // len(own)))]
        order.append(np.concatenate(rounds)[:wanted] if rounds else own[:0])
    return random.permutation(np.concatenate(order))


def padding(length: int) -> int:
    """4 at 32, and in proportion; at least 1, but none around a single row or column: a crop would leave nothing."""
    return 0 if length == 1 else max(1, length // 8)


class BatchSettings(TypedDict, total=False):
    """How batches are made, of images in memory and of images streamed alike."""

    device: Required[torch.device | str]
    mean: Required[Statistics]
    std: Required[Statistics]
    augmentation: Augmentation
    seed: int
    drop_last: bool
    shard: tuple[int, int]
    period: int
    balanced: bool


class EpochBatches:
    """The order of an epoch and the place within it, for images in memory and images streamed alike.

    With `shard` = (rank, world) each batch is that rank's share of the global batch. The state is (epoch, position)
    behind the last batch handed out: an epoch that is left early continues where it stopped.
    """

    draws_on_host = False

    def __init__(self, images: AnyImages, batch_size: int, **settings: Unpack[BatchSettings]) -> None:
        if len(images) == 0:
            raise ValueError("there are no images to make batches of")
        self.count, self.size = len(images), images.shape[1:]
        self.classes = len(images.class_names)
        self.batch_size = min(batch_size, self.count)  # a set smaller than a batch is one batch
        self.augmentation = settings.get("augmentation", PLAIN)
        self.seed = settings.get("seed", 0)
        self.drop_last = settings.get("drop_last", True)
        self.period = settings.get("period", 0)  # 0: every epoch has draws of its own
        self._balanced = images.labels.cpu().numpy() if settings.get("balanced") else None
        self.epoch, self.position = 0, 0
        self.device = torch.device(settings["device"])
        self.normalise = Normalise(settings["mean"], settings["std"], self.device)
        # One copy per epoch: copying per batch would make the host wait for the device each time.
        self.draws_on = torch.device("cpu") if self.draws_on_host else self.device
        self._draws: tuple[int, EpochDraws] | None = None
        rank, world = settings.get("shard", (0, 1))
        if self.batch_size % world:
            raise InputError(
                f"a batch of {self.batch_size} images does not divide among {world} processes",
                remedy=f"Give a `batch_size` that is a multiple of {world}.",
            )
        if world > 1 and not self.drop_last:
            raise ValueError("processes need equal batches: drop_last must be on")
        self._share = slice(rank * self.batch_size // world, (rank + 1) * self.batch_size // world)

    def __len__(self) -> int:
        """Batches in a whole epoch."""
        return self.count // self.batch_size if self.drop_last else -(-self.count // self.batch_size)

    def state_dict(self) -> dict[str, int]:
        return {"seed": self.seed, "epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.seed, self.epoch, self.position = state["seed"], state["epoch"], state["position"]

    def current_draws(self) -> EpochDraws:
        epoch = self.epoch % self.period if self.period else self.epoch
        if self._draws is None or self._draws[0] != epoch:
            draws = draw_epoch(self.count, self.size, len(self), self.augmentation, self.seed, epoch, self._balanced)
            self._draws = (epoch, draws.to(self.draws_on))
        return self._draws[1]

    def places(self, batch: int) -> NDArray[np.int64]:
        """This process's places of a batch in the epoch's order."""
        start, end = batch * self.batch_size, min((batch + 1) * self.batch_size, self.count)
        return np.arange(start, end)[self._share]

    def rows(self, batch: int) -> Tensor:
        """The same where the draws are, without a copy from the host."""
        places = self.places(batch)
        return torch.arange(int(places[0]), int(places[-1]) + 1, device=self.draws_on)

    def advance(self) -> None:
        self.position += 1
        if self.position == len(self):
            self.epoch, self.position = self.epoch + 1, 0

    def mixed(self, x: Tensor, y: Tensor, mix: Mix) -> tuple[Tensor, Tensor]:
        if not self.augmentation.mixes:
            return x, y
        return mixed_images(x, mix), mixed_values(functional.one_hot(y, self.classes).float(), mix.weight)

    def stroked(self, pixels: Tensor, draws: EpochDraws, places: NDArray[np.int64]) -> Tensor:
        return pixels if draws.strokes is None else trivially_augmented(pixels, draws.strokes[places])

    def warped(self, pixels: Tensor, draws: EpochDraws, rows: Tensor) -> Tensor:
        return pixels if draws.warps is None else warped(pixels, draws.warps[rows].to(pixels.device))


class Batches(EpochBatches):
    """Iterating gives one epoch of (x float32 [b, c, h, w], y int64 [b]) on the device, or what is left of it.

    With mixup or CutMix, y is float32 [b, classes]: the weights of the two classes.
    """

    def __init__(self, images: ImageSet, batch_size: int, **settings: Unpack[BatchSettings]) -> None:
        super().__init__(images, batch_size, **settings)
        self.images = images.to(self.device)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        draws = self.current_draws()
        per_chunk = max(1, _CHUNK_PIXELS // (self.batch_size * math.prod(self.images.shape)))
        for start in range(self.position, len(self), per_chunk):
            batches = range(start, min(start + per_chunk, len(self)))
            rows = [self.rows(batch) for batch in batches]
            x, y = self._augment(draws, torch.cat(rows), np.concatenate([self.places(batch) for batch in batches]))
            end = 0
            for batch, row in zip(batches, rows, strict=True):
                part = slice(end, end := end + len(row))
                self.advance()
                yield self.mixed(x[part], y[part], draws.mixes[batch])

    def _augment(self, draws: EpochDraws, rows: Tensor, places: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        chosen = draws.order[rows]
        pixels, labels = self.images.images[chosen], self.images.labels[chosen]
        if self.augmentation.crop or self.augmentation.flip:
            offsets, mirrors = draws.offsets[rows], draws.mirrors[rows]
            if not self.augmentation.crop:
                offsets = torch.empty_like(offsets)
                offsets[:, 0], offsets[:, 1] = (padding(length) for length in self.size)
            if not self.augmentation.flip:
                mirrors = torch.zeros_like(mirrors)
            pixels = crop_and_flip(pixels, offsets, mirrors)
        x = self.normalise(self.warped(self.stroked(pixels, draws, places), draws, rows))
        if self.augmentation.cutout:
            x = cut_out(x, draws.centres[rows], self.augmentation.cutout)
        return x, labels


class Normalise:
    """uint8 pixels to float32 with mean 0 and deviation 1 per channel."""

    def __init__(self, mean: Statistics, std: Statistics, device: torch.device) -> None:
        shape = (1, len(mean), 1, 1)
        deviation = torch.tensor(std, dtype=torch.float64)
        self.scale = (1 / (255 * deviation)).float().view(shape).to(device)
        self.shift = (torch.tensor(mean, dtype=torch.float64) / deviation).float().view(shape).to(device)

    def __call__(self, pixels: Tensor) -> Tensor:
        return pixels.float() * self.scale - self.shift


def crop_and_flip(pixels: Tensor, offsets: Tensor, mirrors: Tensor) -> Tensor:
    """Pads with black, takes each image's window at its own offset and mirrors it where asked: one gather."""
    count, channels, height, width = pixels.shape
    pad_y, pad_x = padding(height), padding(width)
    padded = functional.pad(pixels, (pad_x, pad_x, pad_y, pad_y))
    device = pixels.device
    columns = torch.arange(width, device=device).expand(count, width)
    columns = torch.where(mirrors[:, None], width - 1 - columns, columns) + offsets[:, 1:]
    rows = torch.arange(height, device=device) + offsets[:, :1]
    return padded[
        torch.arange(count, device=device)[:, None, None, None],
        torch.arange(channels, device=device)[None, :, None, None],
        rows[:, None, :, None],
        columns[:, None, None, :],
    ]


def cut_out(x: Tensor, centres: Tensor, side: int) -> Tensor:
    """Sets rows centre - side/2 .. centre + side/2 - 1, and the same columns, to 0, the mean."""
    height, width = x.shape[-2:]
    rows = torch.arange(height, device=x.device) - (centres[:, :1] - side // 2)
    columns = torch.arange(width, device=x.device) - (centres[:, 1:] - side // 2)
    cut_rows, cut_columns = (rows >= 0) & (rows < side), (columns >= 0) & (columns < side)
    return x.masked_fill((cut_rows[:, :, None] & cut_columns[:, None, :])[:, None], 0.0)


def plain_batches(
    images: ImageSet, batch_size: int, *, device: torch.device | str, mean: Statistics, std: Statistics
) -> Iterator[tuple[Tensor, Tensor]]:
    """All images once, in order, normalised only: for evaluation."""
    normalise = Normalise(mean, std, torch.device(device))
    for start in range(0, len(images), batch_size):
        part = slice(start, start + batch_size)
        yield normalise(images.images[part].to(device)), images.labels[part].to(device)
