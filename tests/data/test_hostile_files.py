"""Data files that a stranger made: small ones stay small, and none runs code."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sphynx.data.open import open_data
from sphynx.errors import InputError
from tests.data.layouts import tar_up, write_cifar

LARGE = 120 << 20  # bytes, of zeros: less than a two hundredth of that when compressed
PEAK_BYTES = LARGE * 2 // 3


@contextmanager
def in_little_memory() -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < PEAK_BYTES


def idx(folder: Path) -> Path:
    with gzip.open(folder / "train-images-idx3-ubyte.gz", "wb", compresslevel=1) as file:
        file.write(bytes([0, 0, 8, 3]) + struct.pack(">3I", LARGE >> 20, 1024, 1024))
        for _ in range(LARGE >> 20):
            file.write(bytes(1 << 20))
    return folder


def packed(folder: Path) -> Path:
    np.savez(folder / "train0.npz", off=np.array([0, LARGE]), y=np.zeros(1, np.int32), split=np.array("train"))
    add_array(folder / "train0.npz", LARGE, bytes(LARGE))
    return folder


def add_array(path: Path, length: int, content: bytes) -> None:
    """Adds `blob` to a part: bytes, of which the header says that there are so many."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (length,)})
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("blob.npy", header.getvalue() + content)


def cifar(folder: Path) -> Path:
    """A member that no reader needs: a tar archive is passed through from its beginning to its end."""
    write_cifar(folder / "cifar-10-batches-py", "cifar10")
    archive = tar_up(folder / "cifar-10-batches-py", folder / "cifar.tar.gz")
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(folder / "cifar-10-batches-py", arcname="cifar-10-batches-py")
        large = tarfile.TarInfo("cifar-10-batches-py/test_batch")
        large.size = LARGE
        tar.addfile(large, io.BytesIO(bytes(LARGE)))
    return archive


@pytest.mark.parametrize("made", [idx, packed, cifar], ids=lambda made: made.__name__)
def test_a_small_file_stays_small(made: Callable[[Path], Path], tmp_path: Path) -> None:
    path = made(tmp_path)
    with in_little_memory(), pytest.raises(InputError, match="it would unpack to more than 100 times its size"):
        open_data(str(path))


class Mark:
    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_pickles_in_data_files_run_nothing(tmp_path: Path) -> None:
    """An archive of CIFAR holds pickles; an array of objects in .npz is one."""
    mark = tmp_path / "mark"
    write_cifar(tmp_path / "cifar-10-batches-py", "cifar10")
    (tmp_path / "cifar-10-batches-py" / "data_batch_2").write_bytes(pickle.dumps({b"data": Mark(mark)}))
    with pytest.raises(InputError, match=r"it refers to .*(getattr|touch)"):
        open_data(str(tmp_path / "cifar-10-batches-py"))
    parts = tmp_path / "parts"
    parts.mkdir()
    np.savez(parts / "train0.npz", blob=np.array([Mark(mark)], object), off=np.array([0, 1]), y=np.zeros(1, np.int32))
    with pytest.raises(InputError, match="damaged or not a packed part"):
        open_data(str(parts))
    assert not mark.exists()


def test_an_array_that_no_memory_holds(tmp_path: Path) -> None:
    """Its header says so: nothing of it is there."""
    np.savez(tmp_path / "train0.npz", off=np.array([0, 1]), y=np.zeros(1, np.int32), split=np.array("train"))
    add_array(tmp_path / "train0.npz", 1 << 60, b"")
    with pytest.raises(InputError, match="damaged or not a packed part"):
        open_data(str(tmp_path))
