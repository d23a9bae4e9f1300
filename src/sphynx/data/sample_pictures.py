"""Pictures to try a network with, and their licences: scikit-learn's photographs and digits where it is installed, and
some drawn here, above all of things that the network knows.

Found without importing scikit-learn or torch. Pillow is needed.
"""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image

from sphynx.data.drawn_pictures import DRAWN
from sphynx.errors import MissingPartError

DRAWN_SIDE = 96
DIGIT_SIDE, DIGIT_WHITE = 8, 16  # as scikit-learn keeps them
DIGITS = 10  # the first ten are 0 to 9
OURS = "drawn for Sphynx, MIT licence"
DIGITS_LICENCE = "UCI, optical recognition of handwritten digits, CC BY 4.0"
PHOTOGRAPHERS = {"china": "danielbuechele, flickr, CC BY 2.0", "flower": "vultilion, flickr, CC BY 2.0"}


@dataclass(frozen=True, eq=False)
class SamplePicture:
    picture: Image.Image
    licence: str  # and whose it is
    is_known: bool = False  # as one of the network's classes


def sample_photographs() -> list[Path]:
    folder = _sklearn_datasets()
    if folder is None:
        raise MissingPartError(
            "the sample photographs come with scikit-learn", remedy="pip install scikit-learn"
        ) from None
    return sorted((folder / "images").glob("*.jpg"))


def sample_pictures(channels: int, height: int, class_names: Collection[str] = ()) -> dict[str, SamplePicture]:
    """Sample pictures by name for a network that reads images of this kind, those of its classes first."""
    known = {name: SamplePicture(draw(), OURS, True) for name, draw in DRAWN.items() if name in class_names}
    found = dict(known) if channels == 3 else {}
    if _sklearn_datasets() is not None:
        if channels == 1 and height <= 4 * DIGIT_SIDE:
            is_known = set(class_names) <= set("0123456789")
            found.update({name: SamplePicture(digit, DIGITS_LICENCE, is_known) for name, digit in _digits()})
        else:
            for path in sample_photographs():
                licence = PHOTOGRAPHERS.get(path.stem, "comes with scikit-learn")
                found[path.stem] = SamplePicture(Image.open(path).convert("RGB"), licence)
    if any(sample.is_known for sample in found.values()):
        return found
    return {**found, "sunset": SamplePicture(_sunset(), OURS), "stripes": SamplePicture(_stripes(), OURS)}


def _digits() -> Iterator[tuple[str, Image.Image]]:
    folder = _sklearn_datasets()
    assert folder is not None
    with gzip.open(folder / "data" / "digits.csv.gz", "rt") as lines:
        for number, line in enumerate(itertools.islice(lines, DIGITS)):
            grey = np.array(line.split(",")[: DIGIT_SIDE**2], float).reshape(DIGIT_SIDE, DIGIT_SIDE)
            yield f"digit-{number}", Image.fromarray(np.round(grey * (255 / DIGIT_WHITE)).astype(np.uint8))


def _sunset() -> Image.Image:
    y, x = np.mgrid[0:DRAWN_SIDE, 0:DRAWN_SIDE] / DRAWN_SIDE
    sky = np.stack([250 - 60 * (1 - y), 90 + 90 * y, 130 - 90 * y + 80 * (1 - y)], -1)
    sky[np.hypot(x - 0.5, y - 0.6) < 0.18] = (255, 225, 120)
    sea = np.stack([60 + 30 * x, 50 + 20 * y, 110 + 20 * y], -1)
    return Image.fromarray(np.where((y > 0.68)[..., None], sea, sky).clip(0, 255).astype(np.uint8))


def _stripes() -> Image.Image:
    y, x = np.mgrid[0:DRAWN_SIDE, 0:DRAWN_SIDE]
    dark = ((x + 8 * np.sin(y / 12)) // 12 % 2).astype(bool)
    return Image.fromarray(np.where(dark[..., None], (30, 28, 26), (245, 240, 228)).astype(np.uint8))


def _sklearn_datasets() -> Path | None:
    found = find_spec("sklearn")
    return None if found is None or found.origin is None else Path(found.origin).parent / "datasets"
