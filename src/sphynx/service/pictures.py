"""An image file as the pixels that a program reads: uint8 [channels, height, width]. Needs Pillow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import InputError, MissingPartError
from sphynx.space.tally import Shape

MODES = {1: "L", 3: "RGB"}


def read_picture(path: Path, image: Shape) -> NDArray[np.uint8]:
    """Resized to cover the program's image, then its middle: what training does to folders of images."""
    try:
        from PIL import Image
    except ModuleNotFoundError:
        raise MissingPartError(
            "reading images needs the package Pillow", remedy="pip install 'sphynx[client]'"
        ) from None

    mode = MODES.get(image.channels)
    if mode is None:
        raise InputError(
            f"the program reads {image.channels} channels", where=str(path), remedy="Call Client.infer with an array."
        )
    try:
        with Image.open(path) as opened:
            picture = opened.convert(mode)
    except Exception as error:  # Pillow's readers raise many kinds on hostile bytes: all mean "not a usable image"
        raise InputError(
            f"the image cannot be read ({type(error).__name__})", where=str(path), remedy="Give a PNG or JPEG file."
        ) from None
    if picture.size != (image.width, image.height):
        scale = max(image.width / picture.width, image.height / picture.height)
        wide, high = max(image.width, round(picture.width * scale)), max(image.height, round(picture.height * scale))
        left, top = (wide - image.width) // 2, (high - image.height) // 2
        resized = picture.resize((wide, high), Image.Resampling.BILINEAR)
        picture = resized.crop((left, top, left + image.width, top + image.height))
    pixels = np.asarray(picture, np.uint8).reshape(image.height, image.width, image.channels)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
