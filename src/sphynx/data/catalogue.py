"""Public data sets that can be fetched by name, with the hashes of their files.

Without a network the error says which file to put where; a file that is already there is checked and used.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

from sphynx.errors import InputError, MissingPartError, SphynxError
from sphynx.run.cache import cache_folder

_CHUNK = 1 << 20


@dataclass(frozen=True)
class RemoteFile:
    url: str
    md5: str  # as the publishers state it

    @property
    def name(self) -> str:
        return self.url.rsplit("/", 1)[1]


@dataclass(frozen=True)
class Entry:
    name: str
    description: str
    folder: str  # below the data home; the files are kept there
    files: tuple[RemoteFile, ...]
    opens: str  # what to open, below the data home
    terms: str  # what its publishers allow, as far as they say; cards of networks trained on it repeat it


_CIFAR = (
    "published for research without a licence; cite Krizhevsky, Learning Multiple Layers of Features from Tiny Images, "
    "2009; the photographs belong to their makers"
)
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"

CATALOGUE = {
    entry.name: entry
    for entry in (
        Entry(
            "cifar10",
            "CIFAR-10: 60,000 colour images of 32x32, 10 classes, 163 MiB",
            ".",
            (
                RemoteFile(
                    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz", "c58f30108f718f92721af3b95e74349a"
                ),
            ),
            "cifar-10-python.tar.gz",
            _CIFAR,
        ),
        Entry(
            "cifar100",
            "CIFAR-100: 60,000 colour images of 32x32, 100 classes, 161 MiB",
            ".",
            (
                RemoteFile(
                    "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz", "eb9058c3a382ffc7106e4002c42a8d85"
                ),
            ),
            "cifar-100-python.tar.gz",
            _CIFAR,
        ),
        Entry(
            "tiny-imagenet",
            "Tiny-ImageNet-200: 110,000 colour images of 64x64, 200 classes, 237 MiB",
            ".",
            (RemoteFile("http://cs231n.stanford.edu/tiny-imagenet-200.zip", "90528d7ca1a48142e341f4ef8d21d0de"),),
            "tiny-imagenet-200",
            "a part of ImageNet, whose terms allow non-commercial research and education alone; the photographs belong "
            "to their makers. Whether such terms reach weights is not settled: use these for research",
        ),
        Entry(
            "fashion-mnist",
            "Fashion-MNIST: 70,000 grey images of 28x28, 10 classes, 30 MiB",
            "fashion-mnist",
            (
                RemoteFile(_FASHION + "train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
                RemoteFile(_FASHION + "train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
                RemoteFile(_FASHION + "t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
                RemoteFile(_FASHION + "t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
            ),
            "fashion-mnist",
            "MIT licence, Zalando SE",
        ),
    )
}


def data_home() -> Path:
    """$SPHYNX_DATA, else the user's cache."""
    if home := os.environ.get("SPHYNX_DATA"):
        return Path(home)
    return cache_folder() / "data"


def get(name: str) -> Path:
    """Fetches what is missing, checks every file and returns what to open."""
    if name not in CATALOGUE:
        raise InputError(f"{name!r} is not a known data set", remedy=f"Known names are {', '.join(CATALOGUE)}.")
    entry = CATALOGUE[name]
    folder = data_home() / entry.folder
    folder.mkdir(parents=True, exist_ok=True)
    for file in entry.files:
        path = folder / file.name
        if not path.exists():
            _download(file, path)
        check_hash(path, file.md5)
        if path.suffix == ".zip" and not (data_home() / entry.opens).exists():
            _unpack(path, data_home() / entry.opens)
    return data_home() / entry.opens


def _unpack(path: Path, folder: Path) -> None:
    """`folder` appears once it is complete: unpacking that was cut off starts again."""
    temporary = folder.with_name(f".{folder.name}.new")
    shutil.rmtree(temporary, ignore_errors=True)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(temporary)  # zipfile keeps members inside
    (temporary / folder.name).rename(folder)
    shutil.rmtree(temporary)


def check_hash(path: Path, md5: str) -> None:
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    if digest.hexdigest() != md5:
        raise InputError(
            f"its hash is {digest.hexdigest()}, not {md5}: it is incomplete or not the published file",
            where=str(path),
            remedy="Remove the file and fetch it again.",
        )


def _download(file: RemoteFile, path: Path) -> None:
    try:
        import pooch
    except ImportError:
        raise MissingPartError(
            f"downloading needs the package pooch; or put {file.url} at {path} yourself", remedy="pip install pooch"
        ) from None
    try:
        pooch.retrieve(file.url, f"md5:{file.md5}", fname=path.name, path=path.parent, progressbar=_bar())
    except ValueError as error:  # pooch's report of a wrong hash
        raise InputError(str(error), where=file.url, remedy="Try again later.") from error
    except OSError as error:  # requests' errors are OSErrors
        raise SphynxError(
            f"{file.url} cannot be reached ({type(error).__name__})",
            where=str(path),
            remedy=f"Fetch that file on another machine and put it at {path}.",
        ) from error


class _DownloadBar:
    """The face that pooch asks of a progress bar, drawn by rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

        self._bar = Progress(BarColumn(), DownloadColumn(), TimeRemainingColumn(), console=Console(stderr=True))
        self._task = self._bar.add_task("download", total=None)
        self._bar.start()

    @property
    def total(self) -> int:
        return int(self._bar.tasks[0].total or 0)

    @total.setter
    def total(self, value: int) -> None:
        self._bar.update(self._task, total=value)

    def update(self, value: int) -> None:
        self._bar.update(self._task, advance=value)

    def reset(self) -> None:
        self._bar.reset(self._task)

    def close(self) -> None:
        self._bar.stop()


def _bar() -> _DownloadBar:
    return _DownloadBar()
