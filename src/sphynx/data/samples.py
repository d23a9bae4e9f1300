"""Images to measure a network with, labelled or not, from whatever somebody has of them.

    a data set, its name or path                labelled
    a folder of images without class folders    not labelled; made as large as the network's images
    FILE.npy                                    not labelled: [n, channels, height, width], or as `pixels_for` takes it
    an array or tensor                          likewise
    a DataLoader, a torch Dataset               labelled where each item is an image with a whole number, its class

Only some of the images are taken, the same ones every time but of a DataLoader, whose first ones are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from sphynx.data.decode import SKIP
from sphynx.data.image_files import find_images
from sphynx.data.images import Data, ImageSet, Statistics
from sphynx.data.picture import cover, read_upright
from sphynx.data.source import DataSource, source_of
from sphynx.data.streamed import StreamedData, StreamedSet
from sphynx.errors import InputError

Array = np.ndarray[Any, np.dtype[Any]]
Size = tuple[int, int, int]  # channels, height, width

ARRAY_SUFFIX = ".npy"
_SEED = 0
_WHOLE = 0.02  # of one of 255 steps: floats that are as near to whole pixels are pixels
_REMEDY = (
    "Give uint8 images [n, channels, height, width], floats that are pixel / 255, or these normalised with the `mean` "
    "and `std` that are given. Numbers that are not pictures are given as the network reads them, in a .npy file."
)


@dataclass(frozen=True, eq=False)
class Samples:
    """Some images of a data set, and what is known of them.

    >>> sphynx.data.samples.samples_of(numpy.zeros((3, 1, 8, 8), "uint8"), 2).labels is None  # doctest: +SKIP
    True
    """

    images: Array  # uint8, or floats where they were given so
    name: str
    labels: Array | None = None  # int64 [n]
    class_names: tuple[str, ...] = ()
    picture_part: float = 1.0  # see `DataFace.picture_part`
    source: DataSource | None = None

    def __len__(self) -> int:
        return len(self.images)

    @classmethod
    def of_set(cls, images: ImageSet, name: str = "images") -> Samples:
        return cls(images.images.cpu().numpy(), name, images.labels.cpu().numpy(), images.class_names)

    def without_labels(self) -> Samples:
        return replace(self, labels=None, class_names=())


Given = Samples | Data | StreamedData | Tensor | Array | DataLoader[Any] | Dataset[Any]


def samples_of(given: Given, count: int) -> Samples:
    """At most `count` samples of what is given; 0: all."""
    if isinstance(given, Samples):
        kept = _chosen(len(given), count)
        return replace(given, images=given.images[kept], labels=None if given.labels is None else given.labels[kept])
    if isinstance(given, Data | StreamedData):
        found = Samples.of_set(calibration_set(given.train, count), given.name)
        return replace(found, picture_part=given.picture_part, source=given.source)
    if isinstance(given, Tensor | np.ndarray):
        array = np.asarray(given.detach().cpu() if isinstance(given, Tensor) else given)
        return Samples(array[_chosen(len(array), count)], "array")
    if isinstance(given, DataLoader):
        return _stacked(_of_batches(given, count), given.dataset)
    if isinstance(given, Dataset):
        return _stacked(_of_items(given, count), given)
    raise InputError(
        f"{type(given).__name__} is not data",
        where="`calibrate`",
        remedy="Give a data set, its name or path, an array, a tensor, a DataLoader or a torch Dataset.",
    )


def open_samples(
    spec: str,
    image: Size | None,
    count: int,
    *,
    skip_bad: bool = False,
    left_out: Callable[[str], None] = lambda _line: None,
) -> Samples | None:
    """Open a .npy file or a folder of images without classes, at most `count` (0: all); None where the path is neither.

    A folder's images are cut and resized to `image` where it is given. What `skip_bad` leaves out is told `left_out`.
    """
    path = Path(spec)
    if path.suffix == ARRAY_SUFFIX and path.is_file():
        try:
            array = np.load(path, allow_pickle=False, mmap_mode="r")
            return Samples(array[_chosen(len(array), count)], path.name, source=source_of(spec))
        except (OSError, ValueError, TypeError) as error:
            raise InputError(f"it cannot be read ({error})", where=spec, remedy="Write it with numpy.save.") from None
    if not path.is_dir() or any(child.is_dir() and not child.name.startswith(".") for child in path.iterdir()):
        return None
    files, _ = find_images(path)
    if not files:
        if any(path.iterdir()):
            return None
        raise InputError("the folder is empty", where=spec, remedy="Put images like the training images into it.")
    chosen = [files[index] for index in _chosen(len(files), count)]
    found: list[Array] = []
    for file in chosen:
        try:
            found.append(_picture(file, image))
        except InputError as error:
            if not skip_bad:
                raise InputError(error.what, where=str(file), remedy=SKIP) from None
            left_out(f"left out {file}: {error.what}")
    if not found or len({pixels.shape for pixels in found}) > 1:
        raise InputError(
            "its images have several sizes" if found else "none of its images can be read",
            where=spec,
            remedy="Give `image_size=N` to resize all images to N x N." if found else "Give other images.",
        )
    return Samples(np.stack(found), path.name, source=source_of(spec, skip_bad=skip_bad))


def _picture(file: Path, image: Size | None) -> Array:
    picture = read_upright(file, str(file))
    if image is None:
        return _array(picture)
    channels, height, width = image
    return _array(cover(picture, width, height).convert("L" if channels == 1 else "RGB"))


def calibration_set(images: ImageSet | StreamedSet, count: int) -> ImageSet:
    """Some of the images, spread over all of them, the same ones every time."""
    if isinstance(images, StreamedSet):
        images = images.sample(count)
    return images.subset(torch.from_numpy(_chosen(len(images), count)))


def pixels_for(images: Array, image: Size, mean: Statistics = (0.0,), std: Statistics = (1.0,)) -> Array:
    """The images as uint8 [n, channels, height, width]: channels last are moved, signals reshaped; floats have to be
    pixels over 255, normalised by this mean and deviation or not at all."""
    pixels = as_pixels(shaped(images, image), mean, std)
    if pixels is None:
        raise _unfit(images, "these are not pixels")
    return pixels


def shaped(images: Array, image: Size) -> Array:
    """The images, or other numbers, as [n, channels, height, width]."""
    channels, height, width = image
    if images.ndim < 2 or not len(images) or prod(images.shape[1:]) != prod(image):
        raise _unfit(images, f"the network reads {channels}x{height}x{width} (channels, height, width)")
    if images.shape[1:] == (height, width, channels) != (channels, height, width):
        images = images.transpose(0, 3, 1, 2)
    return np.asarray(images).reshape(len(images), *image)


def as_pixels(whole: Array, mean: Statistics = (0.0,), std: Statistics = (1.0,)) -> Array | None:
    """Images [n, channels, height, width] as uint8; None where they are other numbers than pixels."""
    if whole.dtype == np.uint8:
        return np.ascontiguousarray(whole)
    if whole.dtype.kind not in "fiu":
        return None
    readings = [whole]
    if whole.dtype.kind == "f":
        means, deviations = (np.asarray(each, np.float64).reshape(-1, 1, 1) for each in (mean, std))
        readings = [whole * 255.0, (whole * deviations + means) * 255.0]
    for pixels in readings:
        nearest = np.rint(pixels)
        if nearest.min() >= 0 and nearest.max() <= 255 and np.abs(pixels - nearest).max() < _WHOLE:
            return np.ascontiguousarray(nearest.astype(np.uint8))
    return None


def _unfit(images: Array, why: str) -> InputError:
    shown = f"{'x'.join(map(str, images.shape[1:]))} ({images.dtype})"
    return InputError(f"there are {len(images)} images of {shown}; {why}", where="calibration data", remedy=_REMEDY)


def _chosen(length: int, count: int) -> Array:
    return np.sort(np.random.default_rng(_SEED).permutation(length)[: count or None])


def _of_batches(loader: DataLoader[Any], count: int) -> Iterable[tuple[Any, Any]]:
    taken = 0
    for batch in loader:
        images, labels = _pair(batch)
        for number in range(len(images)):
            yield images[number], None if labels is None else labels[number]
        taken += len(images)
        if 0 < count <= taken:
            return


def _of_items(data: Dataset[Any], count: int) -> Iterable[tuple[Any, Any]]:
    if isinstance(data, IterableDataset):
        return (_pair(item) for item in islice(iter(data), count or None))
    if not hasattr(data, "__len__"):
        raise InputError("its length is unknown", where=type(data).__name__, remedy="Give a DataLoader of it.")
    return (_pair(data[index]) for index in _chosen(len(data), count).tolist())


def _pair(item: Any) -> tuple[Any, Any]:
    if isinstance(item, Tensor | np.ndarray) or not isinstance(item, Sequence):
        return item, None
    return item[0], item[1] if len(item) > 1 else None


def _stacked(pairs: Iterable[tuple[Any, Any]], data: Dataset[Any]) -> Samples:
    images, labels = [], []
    for image, label in pairs:
        images.append(_array(image))
        labels.append(label)
    name = type(data).__name__
    if not images or len({image.shape for image in images}) > 1:
        raise InputError(
            "its images have several sizes" if images else "it is empty",
            where=name,
            remedy="Give images of one size, such as the network reads.",
        )
    numbers = [_class_number(label) for label in labels]
    known = None if None in numbers else np.array(numbers, np.int64)
    names = tuple(map(str, getattr(data, "classes", ()))) if known is not None else ()
    return Samples(np.stack(images), name, known, names)


def _array(image: Any) -> Array:
    """An image, of torch, numpy or Pillow, as an array with its channels first."""
    if isinstance(image, Tensor):
        return image.detach().cpu().numpy()
    array = np.asarray(image)
    if isinstance(image, np.ndarray):
        return array
    return array[None] if array.ndim == 2 else array.transpose(2, 0, 1)  # a picture


def _class_number(label: Any) -> int | None:
    if isinstance(label, Tensor | np.ndarray | np.integer) and np.asarray(label).size == 1:
        label = np.asarray(label).reshape(-1)[0]
    return int(label) if isinstance(label, int | np.integer) and not isinstance(label, bool) else None
