"""CIFAR-10 and CIFAR-100 from the official python archives, as tar.gz or unpacked.

The archives hold pickles. Only what an array of numbers needs is allowed to load: a doctored archive runs no code.
"""

from __future__ import annotations

import io
import pickle
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from sphynx.data.images import Data, ImageSet, make_data
from sphynx.data.unpacked import require_modest
from sphynx.errors import InputError

_REMEDY = "Download the archive again: sphynx data get cifar10, or cifar100."
_PICKLED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("_codecs", "encode"),
    *((module, name) for module in ("numpy.core.multiarray", "numpy._core.multiarray") for name in ("_reconstruct",)),
    *((module, name) for module in ("numpy.core.numeric", "numpy._core.numeric") for name in ("_frombuffer",)),
}


@dataclass(frozen=True)
class Layout:
    name: str
    folder: str
    train: tuple[str, ...]
    test: str
    meta: str
    labels_key: str
    names_key: str


LAYOUTS = (
    Layout(
        "cifar10",
        "cifar-10-batches-py",
        tuple(f"data_batch_{n}" for n in range(1, 6)),
        "test_batch",
        "batches.meta",
        "labels",
        "label_names",
    ),
    Layout("cifar100", "cifar-100-python", ("train",), "test", "meta", "fine_labels", "fine_label_names"),
)


def is_cifar_folder(folder: Path) -> bool:
    return any(all((folder / name).is_file() for name in (layout.test, layout.meta)) for layout in LAYOUTS)


def open_cifar(path: Path) -> Data:
    """A tar archive, or the folder that it unpacks to."""
    if path.is_dir():
        layout = next(layout for layout in LAYOUTS if (path / layout.meta).is_file())
        return _assemble(layout, lambda name: _read_file(path / name), path)
    try:
        with tarfile.open(path) as archive:
            members = _list_files(archive, path)
            layout = next((layout for layout in LAYOUTS if layout.meta in members), LAYOUTS[1])

            def read(name: str) -> bytes:
                if name not in members:
                    raise InputError(f"the archive has no member {name}", where=str(path), remedy=_REMEDY)
                file = archive.extractfile(members[name])
                assert file is not None  # members holds regular files only
                return file.read()

            data = _assemble(layout, read, path)
            while archive.fileobj is not None and archive.fileobj.read(1 << 20):
                pass  # to the end, where gzip compares its checksum
            return data
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise InputError(f"the archive is damaged or incomplete ({error})", where=str(path), remedy=_REMEDY) from error


def _list_files(archive: tarfile.TarFile, path: Path) -> dict[str, tarfile.TarInfo]:
    """List the plain files of an archive by name. Listing unpacks it, so sizes are added up on the way."""
    found, unpacked_bytes = {}, 0
    for member in archive:
        unpacked_bytes += member.size
        require_modest(unpacked_bytes, path)
        if member.isfile():
            found[Path(member.name).name] = member
    return found


def _assemble(layout: Layout, read: Callable[[str], bytes], path: Path) -> Data:
    meta = _unpickle(read(layout.meta), f"{path}, {layout.meta}")
    names = tuple(_text(name) for name in meta.get(layout.names_key, ()))
    if not names:
        raise InputError(f"it has no {layout.names_key}", where=f"{path}, {layout.meta}", remedy=_REMEDY)

    def part(name: str) -> ImageSet:
        where = f"{path}, {name}"
        table = _unpickle(read(name), where)
        pixels, labels = table.get("data"), np.asarray(table.get(layout.labels_key, []))
        if not isinstance(pixels, np.ndarray) or pixels.dtype != np.uint8 or pixels.shape != (len(labels), 3 * 32 * 32):
            raise InputError("it does not contain 3x32x32 images with labels", where=where, remedy=_REMEDY)
        if len(labels) == 0 or labels.dtype.kind != "i" or labels.min() < 0 or labels.max() >= len(names):
            raise InputError(f"its labels are not numbers below {len(names)}", where=where, remedy=_REMEDY)
        images = torch.from_numpy(pixels.reshape(-1, 3, 32, 32).copy())
        return ImageSet(images, torch.from_numpy(labels.astype(np.int64)), names)

    parts = [part(name) for name in layout.train]
    train = ImageSet(torch.cat([p.images for p in parts]), torch.cat([p.labels for p in parts]), names)
    return make_data(layout.name, train, part(layout.test), where=str(path))


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", where=str(path), remedy=_REMEDY) from error


class _NumbersOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _PICKLED:
            raise pickle.UnpicklingError(f"it refers to {module}.{name}, which a data file does not need")
        return super().find_class(module, name)


def _unpickle(content: bytes, where: str) -> dict[str, Any]:
    try:
        table = _NumbersOnly(io.BytesIO(content), encoding="latin1").load()
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise InputError(f"it is not a CIFAR data file ({error})", where=where, remedy=_REMEDY) from error
    if not isinstance(table, dict):
        raise InputError("it is not a dictionary of arrays", where=where, remedy=_REMEDY)
    return {_text(key): value for key, value in table.items()}


def _text(value: Any) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else str(value)
