"""The pictures of the page in the docs are of today's program: their figures are held to what it counts."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import sphynx

IMAGES = Path(__file__).parents[2] / "docs" / "images"
RECORDED = json.loads((IMAGES / "app.json").read_text())
CODE_COLUMNS = 98  # of code on a page of 838 pixels
AGAIN = "python docs/make_pictures.py records them again"


def test_the_figures_in_the_pictures_are_the_programs() -> None:
    compiled = sphynx.Compiled.load(RECORDED["model"])
    image = np.zeros((1, *compiled.program.image), np.uint8)
    (counted,) = compiled.infer_privately(image, backend=RECORDED["backend"])
    shown = RECORDED["shown"]
    assert shown["round trips"] == str(counted.online_rounds), AGAIN
    online_mb = megabytes(shown["sent"]) + megabytes(shown["received"])
    assert online_mb == pytest.approx(counted.online_bytes / 1e6, abs=1e-3), AGAIN  # a connection adds headers
    # Preparation sends less where both sides choose silent OT, never more.
    prepared_mb = megabytes(shown["prepared before"].rpartition(", ")[2])
    assert 0.5 < 1e6 * prepared_mb / counted.offline_bytes < 1.01, AGAIN


def megabytes(text: str) -> float:
    number, unit = text.split()
    return float(number) / {"MB": 1, "kB": 1e3}[unit]


def test_the_pictures_are_those_that_the_figures_were_read_from() -> None:
    for name, known in RECORDED["sha256"].items():
        assert hashlib.sha256((IMAGES / name).read_bytes()).hexdigest() == known, (name, AGAIN)


def test_the_readmes_picture_is_low_and_begins_with_an_answer() -> None:
    with Image.open(IMAGES / "app.webp") as picture:
        assert picture.height <= 400 and picture.width <= 838 and getattr(picture, "n_frames", 1) > 1
        first = picture.convert("RGB")
    colours = first.crop((430, 200, 610, 380)).getcolors(1 << 16)
    assert colours is None or len(colours) > 200  # what the server received: no empty first frame, no posters


def test_the_readme_is_short_and_nothing_in_it_is_wider_than_its_page() -> None:
    lines = (IMAGES.parents[1] / "README.md").read_text().splitlines()
    assert len(lines) < 120
    blocks = re.findall(r"^```\w+\n(.*?)^```", "\n".join(lines), re.MULTILINE | re.DOTALL)
    code = [line for block in blocks for line in block.splitlines()] + [
        line[4:] for line in lines if line[:4] == "    "
    ]
    assert max(map(len, code)) <= CODE_COLUMNS, max(code, key=len)
