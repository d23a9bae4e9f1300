"""The idx format of MNIST and Fashion-MNIST: zero, zero, type, rank; big-endian lengths; bytes. Plain or gzipped."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from sphynx.data.images import Data, ImageSet, make_data
from sphynx.data.unpacked import most_bytes, require_modest
from sphynx.errors import InputError

_REMEDY = "Download the four files again: sphynx data get fashion-mnist."
_UNSIGNED_BYTE = 8


def find_idx(folder: Path, stem: str) -> Path | None:
    names = (stem, f"{stem}.gz", stem.replace("-idx", ".idx"), stem.replace("-idx", ".idx") + ".gz")
    return next((folder / name for name in names if (folder / name).is_file()), None)


def is_idx_folder(folder: Path) -> bool:
    return find_idx(folder, "train-images-idx3-ubyte") is not None


def open_idx(folder: Path) -> Data:
    splits = []
    for split in ("train", "t10k"):
        images = read_idx(_require(folder, f"{split}-images-idx3-ubyte"), rank=3)
        labels = read_idx(_require(folder, f"{split}-labels-idx1-ubyte"), rank=1)
        if len(images) != len(labels):
            raise InputError(
                f"{len(images)} {split} images have {len(labels)} labels", where=str(folder), remedy=_REMEDY
            )
        splits.append((images, labels))
    classes = 1 + max((int(labels.max()) for _, labels in splits if len(labels)), default=0)
    names = tuple(str(label) for label in range(classes))
    train, test = (
        ImageSet(torch.from_numpy(images[:, None].copy()), torch.from_numpy(labels.astype(np.int64)), names)
        for images, labels in splits
    )
    return make_data(folder.name, train, test, where=str(folder))


def read_idx(path: Path, *, rank: int) -> NDArray[np.uint8]:
    try:
        content = _unzip(path) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"the file is damaged or incomplete ({error})", where=str(path), remedy=_REMEDY) from error
    header = 4 + 4 * rank
    if len(content) < header or content[:4] != bytes([0, 0, _UNSIGNED_BYTE, rank]):
        raise InputError(f"it is not an idx file of bytes with {rank} axes", where=str(path), remedy=_REMEDY)
    lengths = struct.unpack(f">{rank}I", content[4:header])
    if len(content) - header != math.prod(lengths):
        raise InputError(
            f"it should hold {math.prod(lengths)} bytes after its header and holds {len(content) - header}",
            where=str(path),
            remedy=_REMEDY,
        )
    return np.frombuffer(content, np.uint8, offset=header).reshape(lengths)


def _unzip(path: Path) -> bytes:
    with gzip.open(path) as file:
        content = file.read(most_bytes(path) + 1)
    require_modest(len(content), path)
    return content


def _require(folder: Path, stem: str) -> Path:
    path = find_idx(folder, stem)
    if path is None:
        raise InputError(f"there is no {stem} or {stem}.gz", where=str(folder), remedy=_REMEDY)
    return path
