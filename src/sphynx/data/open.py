"""Opens a data set by a word or a path whose kind is recognised by what lies there.

digits                    scikit-learn's 8x8 digits, part of that library: no download
cifar10, cifar100, ...    what `sphynx data get NAME` fetched
PATH                      CIFAR archive or folder, Tiny-ImageNet, idx files, packed parts, or any image folder

`open_known` opens the data that a run or a compiled program was made with, unless others are named.
"""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from sphynx.data.catalogue import CATALOGUE, data_home
from sphynx.data.cifar import is_cifar_folder, open_cifar
from sphynx.data.folders import is_tiny_imagenet, open_image_folder, open_tiny_imagenet
from sphynx.data.idx import is_idx_folder, open_idx
from sphynx.data.image_files import count_of, find_images
from sphynx.data.images import Data, ImageSet, make_data
from sphynx.data.packed import is_packed_folder, open_packed
from sphynx.data.source import DataSource, source_of
from sphynx.data.streamed import StreamedData, open_stream
from sphynx.errors import InputError, MissingPartError

DIGITS = "digits"
DIGITS_TEST_FRACTION, DIGITS_SEED = 0.2, 0
KINDS = "a CIFAR archive, a Tiny-ImageNet folder, idx files, packed .npz parts, or a folder of class folders"


def open_data(spec: str, *, image_size: int | None = None, skip_bad: bool = False, groups: str | None = None) -> Data:
    """`image_size` resizes the images of a folder (shorter side, then the middle square).

    `skip_bad` leaves out files that cannot be read; `Data.left_out` names them. Otherwise all are named in the error.
    `groups` is the rule by which the images of a folder belong together (`data.groups`).
    """
    named = source_of(spec, image_size=image_size, skip_bad=skip_bad, groups=groups)
    source = DataSource(spec) if spec == DIGITS else named
    data = replace(_open(spec, image_size, skip_bad, groups), source=source)
    if groups is not None and (data.train.groups is None or is_packed_folder(Path(spec))):
        raise InputError(
            "its images have no file names: only those of folders are grouped, and packed parts keep the groups that "
            "they were packed with",
            where=spec,
            remedy="Leave `groups` out.",
        )
    size = data.train.shape[1:]
    if image_size is not None and size != (image_size, image_size):
        raise InputError(
            f"its images are {size[0]}x{size[1]}: only those of folders are resized",
            where=spec,
            remedy="Leave `image_size` out.",
        )
    return data


def _open(spec: str, image_size: int | None, skip_bad: bool, groups: str | None) -> Data:
    if spec == DIGITS:
        return _open_digits()
    path = Path(spec)
    if spec in CATALOGUE and not path.exists():
        path = data_home() / CATALOGUE[spec].opens
        if not path.exists():
            raise InputError(
                f"{spec} is not on this machine", where=str(path), remedy=f"Fetch it with: sphynx data get {spec}"
            )
    if not path.exists():
        raise InputError(
            "there is no such file or folder, and no data set of that name",
            where=spec,
            remedy=f"Give {KINDS}, or one of {', '.join((DIGITS, *CATALOGUE))}.",
        )
    if path.is_file():
        if tarfile_like(path):
            return open_cifar(path)
        raise InputError("the file is not in a known format", where=spec, remedy=f"Give {KINDS}.")
    return _open_folder(path, image_size, skip_bad, groups)


def open_any(
    spec: str,
    *,
    image_size: int | None = None,
    stream: bool = False,
    skip_bad: bool = False,
    groups: str | None = None,
) -> Data | StreamedData:
    """`stream` leaves the images of a folder on the disk and decodes them while they are used (ImageNet)."""
    if not stream:
        return open_data(spec, image_size=image_size, skip_bad=skip_bad, groups=groups)
    if image_size is None:
        raise InputError(
            "streamed images need an image size",
            where=spec,
            remedy="Give `image_size`, for example 224.",
        )
    if not Path(spec).is_dir():
        raise InputError("there is no such folder", where=spec, remedy="Only image folders can be streamed.")
    source = source_of(spec, image_size=image_size, stream=True, skip_bad=skip_bad, groups=groups)
    return replace(open_stream(Path(spec), image_size, skip_bad=skip_bad, groups=groups), source=source)


def _open_folder(path: Path, image_size: int | None, skip_bad: bool, groups: str | None) -> Data:
    kinds: tuple[tuple[Callable[[Path], bool], Callable[[], Data]], ...] = (
        (is_cifar_folder, lambda: open_cifar(path)),
        (is_tiny_imagenet, lambda: open_tiny_imagenet(path, image_size, skip_bad=skip_bad)),
        (is_idx_folder, lambda: open_idx(path)),
        (is_packed_folder, lambda: open_packed(path, image_size, skip_bad=skip_bad)),
    )
    for recognises, opens in kinds:
        if recognises(path):
            return opens()
    if any(child.is_dir() for child in path.iterdir()):
        return open_image_folder(path, image_size, skip_bad=skip_bad, groups=groups)
    loose, _ = find_images(path)
    if loose:
        raise InputError(
            f"it holds {count_of(len(loose), 'image')}, but no class folders",
            where=str(path),
            remedy=f"Put the images of each class into a folder with its name: {path}/CLASS/{loose[0].name}.",
        )
    raise InputError("the folder contains no data in a known format", where=str(path), remedy=f"Give {KINDS}.")


def tarfile_like(path: Path) -> bool:
    """Recognise an archive by its name, so that a truncated one is reported as truncated, not as unknown; else by
    content."""
    return path.name.endswith((".tar", ".tar.gz", ".tgz")) or tarfile.is_tarfile(path)


def _open_digits() -> Data:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise MissingPartError(
            "the digits are part of scikit-learn, which is not installed", remedy="pip install scikit-learn"
        ) from None
    bunch = load_digits()
    pixels = np.round(bunch.images * (255 / 16)).astype(np.uint8)
    names = tuple(str(name) for name in bunch.target_names)
    everything = ImageSet(
        torch.from_numpy(pixels)[:, None].contiguous(), torch.from_numpy(bunch.target.astype(np.int64)), names
    )
    train, test = everything.split(DIGITS_TEST_FRACTION, DIGITS_SEED)
    return make_data(DIGITS, train, test, where=DIGITS, mirrored=False)


def open_known(
    given: str,
    image_size: int | None,
    stream: bool | None,
    known: DataSource | None,
    *,
    where: str,
    parameter: str = "data",
    skip_bad: bool = False,
) -> Data | StreamedData:
    """The data that are `given` by name or path, else the `known` ones, which the run or program names.

    Size and streaming are the recorded ones for both, unless they are given: data that were moved are still to be made
    into the images that the network takes. `skip_bad` leaves out files that cannot be read, as does one recorded.
    `parameter` is what errors call the given data.
    """
    naming = f"`{parameter}=DATA`"
    if not given and known is None:
        raise InputError("it does not name the data it was made with", where=where, remedy=f"Name them: {naming}.")
    source = known or DataSource(given)
    streamed = source.stream if stream is None else stream
    try:
        return open_any(
            given or source.spec,
            image_size=image_size or source.image_size,
            stream=streamed,
            skip_bad=skip_bad or source.skip_bad,
            groups=None if given else source.groups,
        )
    except InputError as error:
        if not given:
            raise InputError(
                f"the data it was made with cannot be opened: {error.what}",
                where=error.where or where,
                remedy=f"Name them: {naming}. {error.remedy}",
            ) from None
        if streamed and stream is None:
            remedy = f"{error.remedy} It was made with streamed images; to open others: `stream=False`."
            raise InputError(error.what, where=error.where, remedy=remedy) from None
        if image_size is None and source.image_size is not None:
            _refuse_fixed_size(given, source.image_size)
        raise


def _refuse_fixed_size(data: str, recorded: int) -> None:
    """Refuse data that cannot be resized to the recorded size: nobody gave that size, so nobody can leave it out."""
    try:
        height, width = open_data(data).train.shape[1:]
    except InputError:
        return  # they cannot be opened at all, which is the error to tell
    raise InputError(
        f"its images are {height}x{width}, the network takes those of {recorded}x{recorded}",
        where=data,
        remedy=f"Name a folder of images, which are resized, or data of {recorded}x{recorded}.",
    ) from None
