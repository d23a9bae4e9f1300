"""What cameras and scanners write, as training and a client read it: both see the same upright eight-bit picture, and
the same part of it.
"""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from sphynx.data.decode import decode_image
from sphynx.data.open import open_any
from sphynx.data.streamed import StreamedData, stream_plain
from sphynx.errors import InputError
from sphynx.service.pictures import read_picture
from sphynx.space.tally import Shape
from tests.data.layouts import pixels, write_classes, write_image
from tests.program.programs import program_reading

ORIENTATION, TURNED_RIGHT = 0x0112, 6


def as_trained_and_asked(path: Path, channels: int, height: int, width: int) -> NDArray[np.uint8]:
    trained = decode_image(path, path.name)
    asked = read_picture(path, program_reading(Shape(channels, height, width)))
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
    with pytest.raises(InputError, match=r"depth\.tif: its pixels are 32-bit numbers"):
        decode_image(tmp_path / "depth.tif", "depth.tif")


def test_a_transparent_or_palette_picture_has_colours(tmp_path: Path) -> None:
    colours = np.random.default_rng(1).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(colours).quantize(64).save(tmp_path / "palette.png")
    Image.fromarray(colours).convert("RGBA").save(tmp_path / "alpha.png")
    np.testing.assert_array_equal(as_trained_and_asked(tmp_path / "palette.png", 3, 6, 8), colours)
    np.testing.assert_array_equal(as_trained_and_asked(tmp_path / "alpha.png", 3, 6, 8), colours)


@pytest.mark.parametrize("size", [8, 9, 13, 16])
def test_a_client_shows_the_part_that_streamed_evaluation_measured(size: int, tmp_path: Path) -> None:
    """Whatever the picture's size, orientation and channels: wide, tall, smaller, of the size already, grey, turned."""
    write_classes(tmp_path / "train", n=2, size=20)
    write_classes(tmp_path / "val", n=1, size=round(size / 0.875))
    shapes = {"wide": (21, 50, 3), "tall": (47, 22, 3), "small": (5, 6, 3), "sized": (size, size, 3), "grey": (30, 33)}
    for name, shape in shapes.items():
        write_image(tmp_path / "val" / "ant" / f"{name}.png", pixels(1, shape)[0])
    exif = Image.Exif()
    exif[ORIENTATION] = TURNED_RIGHT
    Image.fromarray(pixels(1, (24, 37, 3))[0]).save(tmp_path / "val" / "ant" / "turned.png", exif=exif)

    data = open_any(str(tmp_path), image_size=size, stream=True)
    assert isinstance(data, StreamedData)
    shown = torch.cat([x for x, _ in stream_plain(data.test, 3, device="cpu", mean=(0.0,) * 3, std=(1.0,) * 3)])
    program = program_reading(Shape(3, size, size), data.picture_part)
    asked = np.stack([read_picture(file, program) for file in data.test.files])
    np.testing.assert_array_equal(asked, (shown * 255).round().byte().numpy())
    whole = np.stack([read_picture(file, program_reading(program.image)) for file in data.test.files])
    assert (asked != whole).any(axis=(1, 2, 3)).all()  # the part matters for each of them
