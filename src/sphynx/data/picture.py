"""A picture file as training and a client both read it: upright, eight bits a channel, grey or RGB (no torch).

A client that read its picture otherwise than the training did would ask about another picture.
"""

from __future__ import annotations

from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from sphynx.errors import InputError

_GREY_MODES = ("1", "L")
_SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N")


def read_upright(file: Path | IO[bytes], name: str) -> Image.Image:
    """Of mode L where the file is grey, else RGB. Whatever cannot be used is refused by `name`."""
    try:
        with Image.open(file) as opened:
            # Cameras write the sensor's rows and say in EXIF how to turn them: unturned, portraits would lie.
            picture, kind = ImageOps.exif_transpose(opened), opened.format
            picture.load()
    except Exception as error:  # Pillow's readers raise many kinds on hostile bytes: all mean "not a usable image"
        raise InputError(
            f"the image cannot be read ({type(error).__name__}: {error})",
            where=name,
            remedy="Replace or remove this file.",
        ) from error
    return eight_bits(picture, name, kind)


def eight_bits(picture: Image.Image, name: str, kind: str | None = None) -> Image.Image:
    """Of mode L where it is grey, else RGB. `kind` is the file's format."""
    # Pillow before 12 opened sixteen grey bits of a PNG as mode I.
    if picture.mode in _SIXTEEN_BITS or (picture.mode, kind) == ("I", "PNG"):
        # Pillow's own conversion cuts all values above 255 off, which leaves a white picture.
        return picture.convert("I").point(lambda value: value * (1 / 256)).convert("L")
    if picture.mode in ("I", "F"):
        raise InputError(
            "its pixels are 32-bit numbers without a defined white value",
            where=name,
            remedy="Save it with 8 or 16 bits per channel.",
        )
    return picture.convert("L" if picture.mode in _GREY_MODES else "RGB")


def save_picture(pixels: NDArray[np.uint8], path: Path) -> None:
    """uint8 [channels, height, width], grey or RGB, as a file whose name says its format."""
    rows = pixels[0] if len(pixels) == 1 else pixels.transpose(1, 2, 0)
    try:
        Image.fromarray(np.ascontiguousarray(rows)).save(path)
    except (OSError, ValueError) as error:
        raise InputError(
            f"it cannot be written ({error})", where=str(path), remedy="Give a .png file that can be written."
        ) from None


def cover(picture: Image.Image, width: int, height: int, part: float = 1.0) -> Image.Image:
    """Resized until it covers this size, then its middle. `part` is how much of that remains, along either side."""
    if part < 1:
        return _middle(cover(picture, round(width / part), round(height / part)), width, height)
    if picture.size == (width, height):
        return picture
    scale = max(width / picture.width, height / picture.height)
    wide, high = max(width, round(picture.width * scale)), max(height, round(picture.height * scale))
    return _middle(picture.resize((wide, high), Image.Resampling.BILINEAR), width, height)


def _middle(picture: Image.Image, width: int, height: int) -> Image.Image:
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    return picture.crop((left, top, left + width, top + height))
