"""Encoded images (PNG, JPEG, ...) into one uint8 tensor, in threads; all files that cannot be used are named."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sphynx.data.image_files import BadFile, count_of, listed
from sphynx.data.picture import cover, read_upright
from sphynx.errors import InputError

SKIP = "Replace or remove what cannot be read, or leave it out: `skip_bad=True`."

EXAMPLES = 3  # of sizes

Pixels = NDArray[np.uint8]
Encoded = Path | bytes


@dataclass(frozen=True, eq=False)
class Decoded:
    images: Tensor  # uint8 [n, c, h, w]; one channel where all images are grey, else three (see `_channels`)
    kept: tuple[int, ...]  # which of the files they are
    bad: tuple[BadFile, ...] = ()  # the others


def decode_all(
    encoded: Sequence[Encoded], name: Callable[[int], str], *, size: int | None = None, skip_bad: bool = False
) -> Decoded:
    """`name(i)` says which file failed. `skip_bad` leaves out what cannot be read.

    `size` resizes the shorter side and takes the middle square; without it all images must have the same size.
    """
    if not encoded:
        return Decoded(torch.empty(0, 1, 1, 1, dtype=torch.uint8), ())
    if size is not None:
        require_memory(len(encoded), size * size, f"`image_size={size}`")  # of one channel, at the least
    arrays: dict[int, Pixels] = {}
    bad: list[BadFile] = []
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        tried = threads.map(lambda index: _try(encoded[index], name(index), size), range(len(encoded)))
        for index, found in enumerate(tried):
            if isinstance(found, BadFile):
                bad.append(found)
                continue
            if not arrays:
                try:
                    require_memory(len(encoded), found.nbytes, name(index))
                except InputError:
                    threads.shutdown(cancel_futures=True)
                    raise
            arrays[index] = found
    _refuse(() if skip_bad else bad, arrays, name, len(encoded))
    if not arrays:
        return Decoded(torch.empty(0, 1, 1, 1, dtype=torch.uint8), (), tuple(bad))
    channels = _channels(arrays.values())
    images = np.empty((len(arrays), channels, *next(iter(arrays.values())).shape[:2]), np.uint8)
    for row, array in enumerate(arrays.values()):
        images[row] = array if array.ndim == 2 else array.transpose(2, 0, 1)[:channels]
    return Decoded(torch.from_numpy(images), tuple(arrays), tuple(bad))


def _channels(arrays: Collection[Pixels]) -> int:
    """One where all images are grey. Beside grey files, one that is stored in colours without having any is grey, too:
    sets of X-rays hold some, and would have three equal channels for their sake."""
    coloured = [array for array in arrays if array.ndim == 3]
    if len(coloured) < len(arrays) and all((array == array[:, :, :1]).all() for array in coloured):
        return 1
    return 3 if coloured else 1


def find_bad(files: Sequence[Path]) -> dict[int, BadFile]:
    """Find the files that cannot be read, by their places in the list. Reads every file."""
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        tried = threads.map(lambda file: _try(file, str(file), 1), files)
        return {index: found for index, found in enumerate(tried) if isinstance(found, BadFile)}


def decode_image(encoded: Encoded, name: str, *, size: int | None = None) -> Pixels:
    """[h, w] for a grey image, [h, w, 3] for any other."""
    picture = read_upright(io.BytesIO(encoded) if isinstance(encoded, bytes) else encoded, name)
    return np.asarray(picture if size is None else cover(picture, size, size))


def _try(encoded: Encoded, name: str, size: int | None) -> Pixels | BadFile:
    try:
        return decode_image(encoded, name, size=size)
    except InputError as error:
        return BadFile(name, error.what)


def _refuse(bad: Sequence[BadFile], arrays: dict[int, Pixels], name: Callable[[int], str], count: int) -> None:
    """All files at once: what cannot be read, and what has another size than most."""
    sizes = {index: f"{array.shape[1]}x{array.shape[0]}" for index, array in arrays.items()}
    usual = Counter(sizes.values()).most_common(1)[0][0] if sizes else ""
    example = next((name(index) for index, size in sizes.items() if size == usual), "")
    others = {index: size for index, size in sizes.items() if size != usual}
    unusable = len(bad) + len(others)
    if not unusable:
        return
    resize = ["Give `image_size=N` to resize all images to N x N."] if others else []
    remedy = " ".join([*([SKIP] if bad else []), *resize])
    found = list(bad)
    if len(others) == 1:
        [(index, size)] = others.items()
        found.append(BadFile(name(index), f"the image is {size}, but {example} is {usual}"))
    if unusable == 1:
        raise InputError(found[0].why, where=found[0].name, remedy=remedy)
    lines = [listed(found)] if found else []
    if len(others) > 1:
        lines.append(f"  - {_describe_other_sizes(others, name)}, but {example} and most others are {usual}")
    what = f"{unusable:,} of {count_of(count, 'image')} cannot be used"
    raise InputError("\n".join([f"{what}:", *lines]), remedy=remedy)


def _describe_other_sizes(sizes: dict[int, str], name: Callable[[int], str]) -> str:
    """Describe images of other sizes in one line, however many there are, so that unreadable files are not lost
    among them."""
    first = {size: index for index, size in reversed(sizes.items())}
    shown = [f"{name(first[size])} is {size}" for size, _ in Counter(sizes.values()).most_common(EXAMPLES)]
    return f"{count_of(len(sizes), 'image')} have another size: {', '.join(shown)}"


def require_memory(count: int, image_bytes: int, where: str) -> None:
    """Half of it: images are copied once, into one tensor."""
    needed, memory = count * image_bytes, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if needed > memory // 2:
        raise InputError(
            f"{count_of(count, 'image')} of this size need {needed / 2**30:,.0f} GiB; "
            f"this machine has {memory / 2**30:,.0f} GiB",
            where=where,
            remedy="Give a smaller `image_size`, or leave the images on the disk, where that is possible: "
            "`stream=True`.",
        )
