"""Inputs as the integers that a program reads, [channels, height, width]: a picture's pixels, or numbers of a declared
range. Picture files and PIL images need Pillow."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import InputError, MissingPartError
from sphynx.program.ir import Program

if TYPE_CHECKING:
    from PIL.Image import Image

MODES = {1: "L", 3: "RGB"}


def pixels_of(image: str | Path | NDArray[Any] | Image, program: Program) -> NDArray[Any]:
    """Read a file's path, a PIL image, or an array: uint8 of the program's shape, with the channels first or last, or
    of two dimensions where the program reads grey images. A program of numbers takes an array of them or a .npy file,
    and they are clipped to its range."""
    if not program.input.accepts_files:
        return _numbers_of(image, program)
    if isinstance(image, str | Path):
        return read_picture(Path(image), program)
    if not isinstance(image, np.ndarray) and hasattr(image, "convert"):
        return _resize(image, program, "image")
    return _pixels_of_array(np.asarray(image), program)


def _numbers_of(given: str | Path | NDArray[Any] | Image, program: Program) -> NDArray[Any]:
    if not isinstance(given, str | Path):
        return program.input.quantise(given, program.image, where=program.name or "program")
    try:
        numbers = np.load(given, mmap_mode="r", allow_pickle=False)  # mapped: a large file costs nothing yet
        if not isinstance(numbers, np.ndarray):
            raise ValueError("it holds several arrays")
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"it cannot be read as an array: {error}",
            where=str(given),
            remedy=f"Give a .npy file of numbers of shape {program.input.given_dims(program.image)}.",
        ) from None
    return program.input.quantise(numbers, program.image, where=str(given))


def read_picture(path: Path, program: Program) -> NDArray[np.uint8]:
    """Read, resized and cut to the part of it that the program names, by what evaluation does to folders of images."""
    _require_pillow()
    from sphynx.data.picture import read_upright

    _mode(program, str(path))
    if not path.is_file():
        raise InputError("there is no such file", where=str(path), remedy="Give a PNG or JPEG file.")
    return _resize(read_upright(path, str(path)), program, str(path))


def _require_pillow() -> None:
    try:
        import PIL  # noqa: F401 - whether it is there
    except ModuleNotFoundError:
        raise MissingPartError("reading images needs the package Pillow", remedy="pip install pillow") from None


def _resize(picture: Image, program: Program, where: str) -> NDArray[np.uint8]:
    from sphynx.data.picture import cover, eight_bits

    image, mode = program.image, _mode(program, where)
    picture = eight_bits(picture, where)
    if picture.mode != mode and mode == "L":
        picture = picture.convert(mode)  # grey becomes RGB when it is small: the same pixels
    covered = cover(picture, image.width, image.height, program.input.picture_part).convert(mode)
    pixels = np.asarray(covered, np.uint8).reshape(image.height, image.width, image.channels)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))


def _mode(program: Program, where: str) -> str:
    mode = MODES.get(program.image.channels)
    if mode is None:
        raise InputError(
            f"the program reads images of {program.image.channels} channels, which picture files do not have",
            where=where,
            remedy="Give a uint8 array of [channels, height, width] instead (in Python).",
        )
    return mode


def _pixels_of_array(array: NDArray[Any], program: Program) -> NDArray[np.uint8]:
    channels, height, width = program.image
    if array.dtype == np.uint8:
        if array.shape == (channels, height, width):
            return array
        if array.shape == (height, width, channels):
            return np.ascontiguousarray(array.transpose(2, 0, 1))
        if channels == 1 and array.shape == (height, width):
            return array[None]
    raise InputError(
        f"the image is {array.dtype} of shape {array.shape}",
        where=program.name or "program",
        remedy=f"This program reads uint8 images of shape ({channels}, {height}, {width}): channels, height, width.",
    )
