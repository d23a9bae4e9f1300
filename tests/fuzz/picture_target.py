"""The target `image`: a picture file, read and cut for a network, within bounds of memory and processor time.

What costs more than any picture within the limits (data/picture_limits.py) may cost is a bug, as a traceback is.
"""

from __future__ import annotations

import io
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from PIL import Image

from sphynx.data import picture
from sphynx.errors import InputError
from tests.data.costly_pictures import chunk

MOST_BYTES = 1 << 30
MOST_SECONDS = 60.0  # of the processor; a few are usual for the largest
WIDTH, HEIGHT, PART = 64, 48, 7 / 8


class CostlyError(Exception):
    """A picture took more memory or time than the limits allow for."""


@contextmanager
def bounded_cost() -> Iterator[None]:
    """Raise `CostlyError` for what needs more; what is refused for want of memory is costly, too."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    started_s = time.process_time()
    resource.setrlimit(resource.RLIMIT_AS, (held + MOST_BYTES, hard))
    try:
        yield
    except MemoryError as error:
        raise CostlyError(f"more than {MOST_BYTES >> 20} MiB") from error
    except InputError as error:
        if isinstance(error.__cause__, MemoryError):
            raise CostlyError(f"more than {MOST_BYTES >> 20} MiB") from error
        raise
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
    took_s = time.process_time() - started_s
    if took_s > MOST_SECONDS:
        raise CostlyError(f"{took_s:.0f} s")


def read_and_cut(data: bytes) -> None:
    with bounded_cost():
        found = picture.cover(picture.read_upright(io.BytesIO(data), "input"), WIDTH, HEIGHT, PART)
    assert found.size == (WIDTH, HEIGHT) and found.mode in ("L", "RGB")


def good_pictures() -> list[bytes]:
    """Pictures of every format, several depths, turned, animated, interlaced and progressive."""
    colours = Image.fromarray(np.arange(12 * 10 * 3, dtype=np.uint8).reshape(12, 10, 3))
    deep = Image.fromarray(np.arange(12 * 10, dtype=np.uint16).reshape(12, 10) * 500)
    exif = Image.Exif()
    exif[0x0112] = 6
    frames = {"save_all": True, "append_images": [colours.rotate(90)]}
    made = [
        _saved(colours, "PNG"),
        _saved(colours.convert("L"), "PNG", exif=exif),
        _saved(colours.convert("P"), "PNG", **frames),
        _saved(colours.convert("1"), "PNG"),
        _saved(colours.convert("RGBA"), "PNG"),
        _saved(deep, "PNG"),
        _saved(colours, "JPEG", exif=exif),
        _saved(colours, "JPEG", progressive=True),
        _saved(colours.convert("CMYK"), "JPEG"),
        _saved(colours, "BMP"),
        _saved(colours, "WEBP", lossless=True, exif=exif),
        _saved(colours, "WEBP", **frames),
        _saved(colours, "PPM"),
        _saved(colours, "TIFF", compression="tiff_lzw"),
        _saved(deep, "TIFF", **frames),
    ]
    text = chunk(b"zTXt", b"a\0\0" + b"x\x9c\x03\0\0\0\0\1")  # nothing, deflated
    return [*made, made[0][:33] + text + made[0][33:]]


def _saved(image: Image.Image, kind: str, **settings: object) -> bytes:
    stored = io.BytesIO()
    image.save(stored, kind, **settings)
    return stored.getvalue()
