"""A picture file as training and a client both read it: upright, eight bits a channel, grey or RGB (no torch).

A client that read its picture otherwise than the training did would ask about another picture.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from sphynx.data.dicom import is_dicom, read_dicom
from sphynx.data.image_files import READ
from sphynx.data.picture_limits import (
    FORMATS,
    outline,
    refuse_costly_exif,
    refuse_costly_pixels,
    refuse_costly_structure,
)
from sphynx.errors import InputError, MissingPartError

DAMAGED = "its content is damaged or cut off"
_GREY_MODES = ("1", "L")
_SIXTEEN_BITS = ("I;16", "I;16L", "I;16B", "I;16N")
_ORIENTATION = 0x0112  # EXIF's tag, and what undoes its values
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
# A picture that is enlarged is first cut to this multiple of what is shown of it, along either side: one a pixel wide
# would become huge. Those less long are resized whole, and then cut.
_ENLARGED = 16
_NEIGHBOURS = 4  # pixels on which those in the middle depend, at the least


def read_upright(file: Path | IO[bytes], name: str) -> Image.Image:
    """Read an image upright, in mode L where the file is grey, else RGB. Refuses by `name` what is unusable or too
    costly."""
    try:
        with file.open("rb") if isinstance(file, Path) else nullcontext(file) as stream:
            if not stream.read(1):
                raise InputError("the file is empty", where=name, remedy="Replace or remove this file.")
            stream.seek(0)
            if is_dicom(stream):
                return read_dicom(stream, name, read_upright)
            found = outline(stream)
            refuse_costly_structure(found, name)
            with Image.open(stream, formats=FORMATS) as opened:
                refuse_costly_pixels(opened, found, name)
                opened.load()
                refuse_costly_exif(opened, name)
                # Cameras write the sensor's rows and say in EXIF how to turn them: unturned, portraits would lie.
                turn = _TURNS.get(opened.getexif().get(_ORIENTATION, 1))
                picture, kind = opened if turn is None else opened.transpose(turn), opened.format
    except (InputError, MissingPartError):
        raise
    except Exception as error:  # Pillow's readers raise many kinds on hostile bytes: all mean "not a usable image"
        of_system = error.strerror if isinstance(error, OSError) else None
        why = READ if isinstance(error, UnidentifiedImageError) else of_system or DAMAGED
        raise InputError(
            f"the image cannot be read ({why})", where=name, remedy="Replace or remove this file."
        ) from error
    return eight_bits(picture, name, kind)


def eight_bits(picture: Image.Image, name: str, kind: str | None = None) -> Image.Image:
    """Convert to mode L where the image is grey, else RGB. `kind` is the file's format."""
    # Pillow before 12 opened sixteen grey bits of a PNG as mode I.
    if picture.mode in _SIXTEEN_BITS or (picture.mode, kind) == ("I", "PNG"):
        # Pillow's own conversion cuts all values above 255 off, which leaves a white picture.
        return Image.fromarray((np.asarray(picture) >> 8).astype(np.uint8))
    if picture.mode in ("I", "F"):
        raise InputError(
            "its pixels are 32-bit numbers without a defined white value",
            where=name,
            remedy="Save it with 8 or 16 bits per channel.",
        )
    mode = "L" if picture.mode in _GREY_MODES else "RGB"
    return picture if picture.mode == mode else picture.convert(mode)  # which copies even where nothing changes


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
    """Resized until it covers this size, then its middle. `part` is how much of that remains, along either side.

    Memory and time are bounded by the picture's size and this one, whatever the picture's shape.
    """
    if part < 1:
        return _middle(cover(picture, round(width / part), round(height / part)), width, height)
    if picture.size == (width, height):
        return picture
    scale = max(width / picture.width, height / picture.height)
    if scale > 1:
        needed = (math.ceil(_ENLARGED * length / scale) + _NEIGHBOURS for length in (width, height))
        picture = _middle(picture, *map(_kept, picture.size, needed))
    wide, high = max(width, round(picture.width * scale)), max(height, round(picture.height * scale))
    return _middle(picture.resize((wide, high), Image.Resampling.BILINEAR), width, height)


def _kept(length: int, needed: int) -> int:
    """Keep `needed` of a length, or one more: an equal part at both ends is cut off, so that the middle stays."""
    return min(length, needed + (length - needed) % 2)


def _middle(picture: Image.Image, width: int, height: int) -> Image.Image:
    if picture.size == (width, height):
        return picture
    left, top = (picture.width - width) // 2, (picture.height - height) // 2
    return picture.crop((left, top, left + width, top + height))
