"""Image files packed into .npz parts: a whole data set in a few files, each image still in its own encoding.

A part holds `blob` (uint8, the encoded files end to end), `off` (int64, n + 1 offsets into it), `y` (int32 class
numbers) and `split` ("train" or "test"; the part's file is called train0.npz, train1.npz, ...).
"""

from __future__ import annotations

import zipfile
import zlib
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from sphynx.data.decode import decode_all
from sphynx.data.image_files import LeftOut
from sphynx.data.images import Data, ImageSet, make_data
from sphynx.data.unpacked import require_modest
from sphynx.errors import InputError

_REMEDY = "Pack the images again."
_SPLITS = {"train": "train", "test": "test", "val": "test"}


def is_packed_folder(folder: Path) -> bool:
    return any(folder.glob("train*.npz"))


def open_packed(folder: Path, size: int | None = None, *, skip_bad: bool = False) -> Data:
    encoded: dict[str, list[bytes]] = {"train": [], "test": []}
    labels: dict[str, list[int]] = {"train": [], "test": []}
    names: dict[str, list[str]] = {"train": [], "test": []}
    for path in sorted(folder.glob("*.npz")):
        split, images, numbers = _read_part(path)
        encoded[split] += images
        labels[split] += numbers
        names[split] += [f"{path}, image {index}" for index in range(len(images))]
    classes = 1 + max((max(numbers) for numbers in labels.values() if numbers), default=0)
    class_names = tuple(str(label) for label in range(classes))
    found = {
        split: decode_all(encoded[split], names[split].__getitem__, size=size, skip_bad=skip_bad) for split in encoded
    }
    train, test = (
        ImageSet(
            decoded.images,
            torch.tensor([labels[split][index] for index in decoded.kept], dtype=torch.int64),
            class_names,
        )
        for split, decoded in found.items()
    )
    left_out = LeftOut(found["train"].bad + found["test"].bad)
    return make_data(folder.name, train, test, where=str(folder), left_out=left_out)


def _read_part(path: Path) -> tuple[str, list[bytes], list[int]]:
    try:
        with zipfile.ZipFile(path) as archive:
            require_modest(sum(info.file_size for info in archive.infolist()), path)
        with np.load(path, allow_pickle=False) as part:
            blob, offsets, labels, split = part["blob"], part["off"], part["y"], str(part["split"])
    except (OSError, EOFError, ValueError, KeyError, MemoryError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(
            f"the part is damaged or not a packed part ({error})", where=str(path), remedy=_REMEDY
        ) from error
    faults = (
        split not in _SPLITS
        or blob.dtype != np.uint8
        or blob.ndim != 1
        or offsets.shape != (len(labels) + 1,)
        or labels.ndim != 1
        or labels.dtype.kind not in "iu"
        or offsets.dtype.kind not in "iu"
        or (len(labels) > 0 and labels.min() < 0)
        or offsets[0] != 0
        or offsets[-1] != len(blob)
        or bool(np.any(np.diff(offsets) < 0))
    )
    if faults:
        raise InputError("blob, off, y and split do not match", where=str(path), remedy=_REMEDY)
    content = blob.tobytes()
    images = [content[start:end] for start, end in pairwise(offsets.tolist())]
    return _SPLITS[split], images, labels.tolist()
