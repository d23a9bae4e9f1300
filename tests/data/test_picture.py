"""Training and a client read what cameras and scanners write: both see the same upright eight-bit picture, and the same
part of it.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image

from sphynx.data.decode import decode_image
from sphynx.data.open import open_any, open_data
from sphynx.data.picture import cover, read_upright
from sphynx.data.streamed import StreamedData, stream_plain
from sphynx.errors import InputError
from sphynx.service.pictures import read_picture
from sphynx.space.tally import Shape
from tests.data.costly_pictures import READ, REFUSED
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


def test_grey_pictures_stored_in_colours_are_grey_beside_grey_ones(tmp_path: Path) -> None:
    """As among PriMIA's X-rays; a client of a grey network reads the same pixels of either kind."""
    random = np.random.default_rng(0)
    for kind in ("ill", "well"):
        (tmp_path / "scans" / kind).mkdir(parents=True)
        for number in range(6):
            grey = Image.fromarray(random.integers(0, 256, (23, 31)).astype(np.uint8))
            made = grey.convert("RGB") if number % 3 == 0 else grey
            made.save(tmp_path / "scans" / kind / f"{number}.png")
    data = open_data(str(tmp_path / "scans"), image_size=9)
    assert data.image == (1, 9, 9)
    seen = {pixels.numpy().tobytes() for images in (data.train, data.test) for pixels in images.images}
    files = sorted((tmp_path / "scans").rglob("*.png"))
    assert seen == {read_picture(file, program_reading(Shape(1, 9, 9))).tobytes() for file in files}
    Image.new("RGB", (23, 31), (9, 9, 8)).save(tmp_path / "scans" / "ill" / "colour.png")
    assert open_data(str(tmp_path / "scans"), image_size=9).image == (3, 9, 9)


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


def resized_whole(picture: Image.Image, width: int, height: int) -> Image.Image:
    """The definition: resized until it covers this size, then cut, at any price."""
    scale = max(width / picture.width, height / picture.height)
    wide, high = max(width, round(picture.width * scale)), max(height, round(picture.height * scale))
    left, top = (wide - width) // 2, (high - height) // 2
    resized = picture.resize((wide, high), Image.Resampling.BILINEAR)
    return resized.crop((left, top, left + width, top + height))


def test_ordinary_pictures_are_resized_whole() -> None:
    """Bit for bit, whether they are larger or smaller, up to sixteen times as long as wide."""
    random = np.random.default_rng(0)
    for _ in range(300):
        short = int(random.integers(1, 60))
        long = int(random.integers(short, 16 * short + 1))
        size = (short, long) if random.random() < 0.5 else (long, short)
        picture = Image.fromarray(random.integers(0, 256, (*size, 3), np.uint8))
        width, height = (int(length) for length in random.integers(1, 70, 2))
        if random.random() < 0.7:
            height = width
        elif max(width, height) > 4 * min(width, height) or long > 4 * short:
            continue  # together these may be longer than sixteen times what is shown
        expected = resized_whole(picture, width, height)
        np.testing.assert_array_equal(np.asarray(cover(picture, width, height)), np.asarray(expected), str(size))


@pytest.mark.parametrize("long", [800, 801])
@pytest.mark.parametrize(("short", "side"), [(1, 32), (1, 9), (2, 33), (3, 32), (5, 224), (20, 32)])
def test_long_pictures_show_the_same_middle(short: int, long: int, side: int) -> None:
    """A wave along the picture: within two levels of what it is when all of it is resized, whichever way it lies."""
    wave = 127 + 120 * np.sin(np.arange(long) / 3)
    for rows in (np.tile(wave, (short, 1)), np.tile(wave[:, None], (1, short))):
        picture = Image.fromarray(rows.astype(np.uint8))
        shown, expected = (np.asarray(do(picture, side, side), np.int64) for do in (cover, resized_whole))
        assert np.abs(shown - expected).max() <= 2


def test_small_files_cost_little() -> None:
    """Whatever their shape, depth, frames and metadata say: read or refused, with the memory of what is allowed."""
    command = [sys.executable, "-m", "tests.data.costly_pictures", "224"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    found = {
        kind: (int(grew_mib), outcome)
        for kind, grew_mib, outcome in (line.split(" ", 2) for line in run.stdout.splitlines())
    }
    assert set(found) == set(READ) | set(REFUSED)
    for kind in READ:
        grew_mib, outcome = found[kind]
        assert outcome == "(3, 224, 224)" and grew_mib < (256 if kind == "large" else 64), (kind, found[kind])
    for kind, (why, _) in REFUSED.items():
        grew_mib, outcome = found[kind]
        assert why in outcome and grew_mib < 64, (kind, found[kind])


@pytest.mark.filterwarnings("ignore:.*Skipping tag 270")
def test_a_photograph_with_a_wrong_tag_and_a_video_behind_it_is_read(tmp_path: Path) -> None:
    """Cameras write both: a tag longer than the file, and bytes that look like scans."""
    exif = Image.Exif()
    exif[ORIENTATION], exif[0x010E] = TURNED_RIGHT, "a description"
    Image.fromarray(pixels(1, (16, 24, 3))[0]).save(tmp_path / "a.jpg", exif=exif)
    content = (tmp_path / "a.jpg").read_bytes()
    long_tag = (14).to_bytes(4, "big"), (1 << 30).to_bytes(4, "big")  # how long the description is
    content = content.replace(b"\x01\x0e\x00\x02" + long_tag[0], b"\x01\x0e\x00\x02" + long_tag[1])
    (tmp_path / "a.jpg").write_bytes(content + b"\xff\xda" * 100_000)
    assert read_upright(tmp_path / "a.jpg", "a").size == (16, 24)


def test_an_empty_file_is_told_as_such(tmp_path: Path) -> None:
    (tmp_path / "a.png").touch()
    with pytest.raises(InputError, match=r"a\.png: the file is empty"):
        read_upright(tmp_path / "a.png", "a.png")
