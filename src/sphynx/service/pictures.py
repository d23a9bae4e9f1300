"""An image file as the pixels that a program reads: uint8 [channels, height, width]. Needs Pillow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sphynx.errors import InputError, MissingPartError
from sphynx.program.ir import Program

MODES = {1: "L", 3: "RGB"}


def read_picture(path: Path, program: Program) -> NDArray[np.uint8]:
    """Read, resized and cut to the part of it that the program names, by what evaluation does to folders of images."""
    try:
        from sphynx.data.picture import cover, read_upright
    except ModuleNotFoundError:
        raise MissingPartError(
            "reading images needs the package Pillow", remedy="pip install 'sphynx[client]'"
        ) from None

    image = program.image
    mode = MODES.get(image.channels)
    if mode is None:
        raise InputError(
            f"the program reads {image.channels} channels", where=str(path), remedy="Call Client.infer with an array."
        )
    if not path.is_file():
        raise InputError("there is no such file", where=str(path), remedy="Give a PNG or JPEG file.")
    picture = cover(read_upright(path, str(path)).convert(mode), image.width, image.height, program.picture_part)
    pixels = np.asarray(picture, np.uint8).reshape(image.height, image.width, image.channels)
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))
