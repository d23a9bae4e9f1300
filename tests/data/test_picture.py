"""What cameras and scanners write, as training and a client read it: both see the same upright eight-bit picture."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from sphynx.data.decode import decode_image
from sphynx.errors import InputError
from sphynx.service.pictures import read_picture
from sphynx.space.tally import Shape

ORIENTATION, TURNED_RIGHT = 0x0112, 6


def as_trained_and_asked(path: Path, channels: int, height: int, width: int) -> NDArray[np.uint8]:
    trained = decode_image(path, path.name)
    asked = read_picture(path, Shape(channels, height, width))
    np.testing.assert_array_equal(asked, trained.reshape(height, width, channels).transpose(2, 0, 1))
    return trained


def test_a_photograph_is_turned_as_its_camera_says(tmp_path: Path) -> None:
    sensor = np.random.default_rng(0).integers(0, 256, (4, 6, 3), np.uint8)
    exif = Image.Exif()
    exif[ORIENTATION] = TURNED_RIGHT
    Image.fromarray(sensor).save(tmp_path / "portrait.png", exif=exif)
    read = as_trained_and_asked(tmp_path / "portrait.png", 3, 6, 4)
    np.testing.assert_array_equal(read, np.rot90(sensor, -1))


@pytest.mark.parametrize("ending", ["png", "tif"])
def test_sixteen_bits_lose_their_lower_half(ending: str, tmp_path: Path) -> None:
    deep = np.linspace(0, 65535, 48).astype(np.uint16).reshape(6, 8)
    Image.fromarray(deep).save(tmp_path / f"scan.{ending}")
    np.testing.assert_array_equal(as_trained_and_asked(tmp_path / f"scan.{ending}", 1, 6, 8), deep >> 8)


def test_numbers_without_a_white_are_refused(tmp_path: Path) -> None:
    Image.fromarray(np.eye(8, dtype=np.float32)).save(tmp_path / "depth.tif")
    with pytest.raises(InputError, match=r"depth\.tif: its pixels are numbers of 32 bits"):
        decode_image(tmp_path / "depth.tif", "depth.tif")


def test_a_transparent_or_palette_picture_has_colours(tmp_path: Path) -> None:
    colours = np.random.default_rng(1).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(colours).quantize(64).save(tmp_path / "palette.png")
    Image.fromarray(colours).convert("RGBA").save(tmp_path / "alpha.png")
    np.testing.assert_array_equal(as_trained_and_asked(tmp_path / "palette.png", 3, 6, 8), colours)
    np.testing.assert_array_equal(as_trained_and_asked(tmp_path / "alpha.png", 3, 6, 8), colours)
