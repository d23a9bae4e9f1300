"""Image files packed into .npz parts: a whole data set in a few files, each image still in its own encoding.

A part holds `blob` (uint8, the encoded files end to end), `off` (int64, n + 1 offsets into it), `y` (int32 class
numbers) and `split` ("train" or "test"; the part's file is called train0.npz, train1.npz, ...). It may hold `names` of
the classes (text, the same in all parts) and `group` (int64, n: images of one number belong together).
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image

from sphynx.data.decode import decode_all
from sphynx.data.image_files import LeftOut
from sphynx.data.images import Data, ImageSet, make_data, rows_of
from sphynx.data.source import Split
from sphynx.data.unpacked import require_modest
from sphynx.errors import InputError

_REMEDY = "Pack the images again."
_SPLITS: dict[str, Split] = {"train": "train", "test": "test", "val": "test"}


@dataclass(frozen=True, eq=False)
class _Part:
    path: Path
    split: Split
    encoded: list[bytes]
    labels: list[int]
    names: tuple[str, ...]
    groups: list[int] | None


def is_packed_folder(folder: Path) -> bool:
    return any(folder.glob("train*.npz"))


def open_packed(folder: Path, size: int | None = None, *, skip_bad: bool = False) -> Data:
    parts = [_read_part(path) for path in sorted(folder.glob("*.npz"))]
    if len({(part.names, part.groups is None) for part in parts}) > 1:
        raise InputError(
            "the parts differ in their classes' names or in having groups", where=str(folder), remedy=_REMEDY
        )
    classes = 1 + max((label for part in parts for label in part.labels), default=0)
    class_names = parts[0].names or tuple(str(label) for label in range(classes))
    sets, left_out = [], LeftOut()
    for split in ("train", "test"):
        own = [part for part in parts if part.split == split]
        encoded = [image for part in own for image in part.encoded]
        names = [f"{part.path}, image {index}" for part in own for index in range(len(part.encoded))]
        found = decode_all(encoded, names.__getitem__, size=size, skip_bad=skip_bad)
        kept = torch.tensor(found.kept, dtype=torch.int64)
        labels = torch.tensor([label for part in own for label in part.labels], dtype=torch.int64)
        groups = torch.tensor([group for part in own for group in part.groups or ()], dtype=torch.int64)
        known = rows_of(groups if parts[0].groups is not None else None, kept)
        sets.append(ImageSet(found.images, labels[kept], class_names, known))
        left_out += LeftOut(found.bad)
    return make_data(folder.name, *sets, where=str(folder), left_out=left_out)


def save_packed(data: Data, folder: Path, part_bytes: int) -> list[Path]:
    """Write a data set's images as PNG files in parts of at most `part_bytes`, groups and names with them."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise InputError("the folder is not empty", where=str(folder), remedy="Give a new one.")
    return [
        path for split in ("train", "test") for path in _save_split(getattr(data, split), split, folder, part_bytes)
    ]


def _save_split(images: ImageSet, split: str, folder: Path, part_bytes: int) -> Iterator[Path]:
    first, held, content = 0, 0, list[bytes]()
    for index in range(len(images) + 1):
        encoded = _encode(images.images[index].numpy()) if index < len(images) else b""
        if content and (index == len(images) or held + len(encoded) > part_bytes):
            path = folder / f"{split}{sum(1 for _ in folder.glob(f'{split}*.npz'))}.npz"
            rows = slice(first, index)
            arrays: dict[str, NDArray[Any]] = {
                "blob": np.frombuffer(b"".join(content), np.uint8),
                "off": np.cumsum([0, *map(len, content)], dtype=np.int64),
                "y": images.labels[rows].numpy().astype(np.int32),
                "split": np.array(split),
                "names": np.array(images.class_names),
                **({} if images.groups is None else {"group": images.groups[rows].numpy()}),
            }
            np.savez(path, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the names for its own argument
            yield path
            first, held, content = index, 0, []
        held += len(encoded)
        content.append(encoded)


def _encode(pixels: NDArray[np.uint8]) -> bytes:
    out = io.BytesIO()
    rows = pixels[0] if len(pixels) == 1 else np.ascontiguousarray(pixels.transpose(1, 2, 0))
    Image.fromarray(rows).save(out, "PNG", optimize=True)
    return out.getvalue()


def _read_part(path: Path) -> _Part:
    try:
        with zipfile.ZipFile(path) as archive:
            require_modest(sum(info.file_size for info in archive.infolist()), path)
        with np.load(path, allow_pickle=False) as part:
            blob, offsets, labels, split = part["blob"], part["off"], part["y"], str(part["split"])
            names = part["names"] if "names" in part else np.zeros(0, "U1")
            groups = part.get("group")
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
        or names.dtype.kind != "U"
        or names.ndim != 1
        or (len(names) > 0 and len(labels) > 0 and labels.max() >= len(names))
        or (groups is not None and (groups.dtype != np.int64 or groups.shape != labels.shape))
    )
    if faults:
        raise InputError("its arrays do not match one another", where=str(path), remedy=_REMEDY)
    content = blob.tobytes()
    images = [content[start:end] for start, end in pairwise(offsets.tolist())]
    known = None if groups is None else groups.tolist()
    return _Part(path, _SPLITS[split], images, labels.tolist(), tuple(names.tolist()), known)
