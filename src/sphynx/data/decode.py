"""Encoded images (PNG, JPEG, ...) into one uint8 tensor, in threads; a file that cannot be used is named."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sphynx.data.picture import cover, read_upright
from sphynx.errors import InputError

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff")

Pixels = NDArray[np.uint8]
Encoded = Path | bytes


def is_image(path: Path) -> bool:
    """By its name. Copies in hidden folders (.ipynb_checkpoints, .thumbnails) would be test images as well."""
    return path.suffix.lower() in SUFFIXES and not any(part.startswith(".") for part in path.parts)


def decode_all(encoded: Sequence[Encoded], name: Callable[[int], str], *, size: int | None = None) -> Tensor:
    """[n, c, h, w]; one channel where all images are grey, else three. `name(i)` says which one failed.

    `size` resizes the shorter side and takes the middle square; without it all images must have the same size.
    """
    if not encoded:
        return torch.empty(0, 1, 1, 1, dtype=torch.uint8)

    def decode(index: int) -> Pixels:
        return decode_image(encoded[index], name(index), size=size)

    arrays: list[Pixels] = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        decoded = threads.map(decode, range(len(encoded)))
        for index, array in enumerate(decoded):
            fault = _fault(array, arrays[0], name, index) if arrays else _too_large(array, len(encoded), name)
            if fault is not None:
                threads.shutdown(cancel_futures=True)
                raise fault
            arrays.append(array)
    expected = arrays[0].shape[:2]
    channels = max(1 if array.ndim == 2 else 3 for array in arrays)
    images = np.empty((len(arrays), channels, *expected), np.uint8)
    for index, array in enumerate(arrays):
        images[index] = array if array.ndim == 2 else array.transpose(2, 0, 1)
    return torch.from_numpy(images)


def _fault(array: Pixels, first: Pixels, name: Callable[[int], str], index: int) -> InputError | None:
    if array.shape[:2] == first.shape[:2]:
        return None
    sizes = [f"{pixels.shape[1]}x{pixels.shape[0]}" for pixels in (array, first)]
    return InputError(
        f"the image is {sizes[0]}, but {name(0)} is {sizes[1]}",
        where=name(index),
        remedy="Give --image-size N to resize all images to N x N.",
    )


def _too_large(first: Pixels, count: int, name: Callable[[int], str]) -> InputError | None:
    needed, memory = count * first.nbytes, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed <= memory // 2:
        return None
    return InputError(
        f"{count:,} images like this one need {needed / 2**30:.0f} GiB; this machine has {memory / 2**30:.0f} GiB",
        where=name(0),
        remedy="Give --stream and --image-size N: images then stay on the disk.",
    )


def decode_image(encoded: Encoded, name: str, *, size: int | None = None) -> Pixels:
    """[h, w] for a grey image, [h, w, 3] for any other."""
    picture = read_upright(io.BytesIO(encoded) if isinstance(encoded, bytes) else encoded, name)
    return np.asarray(picture if size is None else cover(picture, size, size))
