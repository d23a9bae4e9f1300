"""Parts of a page besides charts: tables, tiles, small pictures.

Counts are written out (25,600), accuracies with two decimals (69.28 %), times and bytes with three digits and a unit.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Table:
    columns: Sequence[str]  # a name with '>' is aligned to the right
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    title: str = ""


@dataclass(frozen=True)
class Tile:
    name: str
    value: str
    detail: str


@dataclass(frozen=True)
class Picture:
    """A small image with a line or two about it."""

    source: str  # data: URL, so that the page stays one file
    title: str
    lines: tuple[str, ...] = ()
    wrong: bool = False  # marked


def picture_url(pixels: NDArray[np.uint8]) -> str:
    """A small PNG as a data: URL, of pixels [channels, height, width]."""
    from PIL import Image

    stored = io.BytesIO()
    picture = np.ascontiguousarray(pixels.transpose(1, 2, 0))
    Image.fromarray(picture[..., 0] if picture.shape[2] == 1 else picture).save(stored, "PNG")
    return "data:image/png;base64," + base64.b64encode(stored.getvalue()).decode()
