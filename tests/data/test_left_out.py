"""Files of a data set that cannot be used are named all at once; those that are left out are counted and named."""

from pathlib import Path

import numpy as np
import pytest

from sphynx.data.image_files import LISTED, BadFile, LeftOut
from sphynx.data.open import open_any, open_data
from sphynx.errors import InputError
from tests.data.layouts import pixels, write_classes, write_image, write_packed


def spoil(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_bytes(b"not an image")


def test_all_bad_files_are_listed_at_once(tmp_path: Path) -> None:
    write_classes(tmp_path)
    spoil(tmp_path, "ant/1.png", "ant/3.png", "bee/0.png")
    write_image(tmp_path / "bee" / "odd.png", pixels(1, (5, 9, 3))[0])
    with pytest.raises(InputError, match="4 of 11 images cannot be used") as caught:
        open_data(str(tmp_path))
    for name in ("ant/1.png", "ant/3.png", "bee/0.png", "bee/odd.png: the image is 9x5"):
        assert str(tmp_path / name) in caught.value.what
    assert "`skip_bad=True`" in caught.value.remedy and "`image_size=N`" in caught.value.remedy


def test_a_link_to_nowhere_is_an_image_that_cannot_be_read(tmp_path: Path) -> None:
    """As git-annex leaves them for files that were not fetched."""
    write_classes(tmp_path)
    (tmp_path / "ant" / "linked.png").symlink_to(tmp_path / "bee" / "0.png")
    (tmp_path / "ant" / "lost.png").symlink_to(tmp_path / "nowhere.png")
    with pytest.raises(InputError, match="No such file") as caught:
        open_data(str(tmp_path))
    assert caught.value.where == str(tmp_path / "ant" / "lost.png")
    opened = open_data(str(tmp_path), skip_bad=True)
    assert len(opened.train) + len(opened.test) == 11 and len(opened.left_out.bad) == 1


def test_other_sizes_do_not_bury_bad_files(tmp_path: Path) -> None:
    write_classes(tmp_path, n=9)
    spoil(tmp_path, "ant/1.png", "bee/0.png")
    for number, name in enumerate(("ant/2.png", "ant/3.png", "bee/4.png", "bee/5.png")):
        write_image(tmp_path / name, pixels(1, (5, 9 + number // 3, 3))[0])
    with pytest.raises(InputError, match="6 of 18 images cannot be used") as caught:
        open_data(str(tmp_path))
    lines = caught.value.what.splitlines()
    assert len(lines) == 4 and "ant/1.png" in lines[1] and "bee/0.png" in lines[2]
    assert f"4 images have another size: {tmp_path}/ant/2.png is 9x5, {tmp_path}/bee/5.png is 10x5" in lines[3]
    assert lines[3].endswith("ant/0.png and most others are 6x6")


def test_the_size_of_most_images_is_the_right_one(tmp_path: Path) -> None:
    write_classes(tmp_path)
    write_image(tmp_path / "ant" / "0.png", pixels(1, (5, 9, 3))[0])
    with pytest.raises(InputError, match=r"ant/0\.png: the image is 9x5, but .*1\.png is 6x6"):
        open_data(str(tmp_path))


def test_bad_files_can_be_left_out(tmp_path: Path) -> None:
    write_classes(tmp_path)
    whole = open_data(str(tmp_path))
    spoil(tmp_path, "ant/1.png", "bee/0.png")
    data = open_data(str(tmp_path), skip_bad=True)
    assert len(data.train) + len(data.test) == 8 and data.source is not None and data.source.skip_bad
    assert [Path(file.name).name for file in data.left_out.bad] == ["1.png", "0.png"]
    assert "cannot be read" in data.left_out.bad[0].why
    kept = {image.tobytes() for part in (data.train, data.test) for image in part.images.numpy()}
    assert kept < {image.tobytes() for part in (whole.train, whole.test) for image in part.images.numpy()}
    for part in (data.train, data.test):  # a label stays with its image
        ants = {pixels(5, (6, 6, 3), 0)[index].transpose(2, 0, 1).tobytes() for index in range(5)}
        for image, label in zip(part.images.numpy(), part.labels.tolist(), strict=True):
            assert (np.ascontiguousarray(image).tobytes() in ants) == (label == 0)


def test_a_class_of_bad_files_only_is_still_an_error(tmp_path: Path) -> None:
    write_classes(tmp_path, n=1)
    spoil(tmp_path, "bee/0.png")
    with pytest.raises(InputError, match="no training image is of class bee"):
        open_data(str(tmp_path), skip_bad=True)


def test_bad_files_of_packed_parts(tmp_path: Path) -> None:
    write_classes(tmp_path / "files")
    spoil(tmp_path / "files", "ant/2.png", "bee/4.png")
    for split in ("train", "test"):
        write_packed(tmp_path / "packed", tmp_path / "files", split)
    with pytest.raises(InputError, match=r"(?s)2 of 10 images.*image 2: .*image 9: "):
        open_data(str(tmp_path / "packed"))
    data = open_data(str(tmp_path / "packed"), skip_bad=True)
    assert data.train.labels.tolist() == [0] * 4 + [1] * 4 and len(data.left_out.bad) == 4


def test_bad_files_of_a_streamed_folder(tmp_path: Path) -> None:
    for split in ("train", "test"):
        write_classes(tmp_path / split)
    spoil(tmp_path, "train/ant/1.png", "test/bee/3.png")
    with pytest.raises(InputError, match=r"ant/1\.png: the image cannot be read") as caught:
        open_any(str(tmp_path), image_size=4, stream=True)
    assert "`skip_bad=True`" in caught.value.remedy
    data = open_any(str(tmp_path), image_size=4, stream=True, skip_bad=True)
    assert (len(data.train), len(data.test), len(data.left_out.bad)) == (9, 9, 2)


def test_formats_that_are_passed_over_are_counted(tmp_path: Path) -> None:
    for split in ("train", "val"):
        write_classes(tmp_path / split)
    for name in (
        "train/ant/a.HEIC",
        "train/bee/b.heic",
        "val/ant/moving.gif",
        "train/ant/README",
        "train/ant/.DS_Store",
    ):
        (tmp_path / name).write_text("x")
    (tmp_path / "unsorted").mkdir()
    data = open_data(str(tmp_path))
    assert data.left_out == LeftOut((), {".heic": 2, ".gif": 1, "": 1}, ("unsorted",))
    said = data.left_out.lines()
    assert said[0].startswith("skipped 2 .heic, 1 without an ending and 1 .gif: PNG, JPEG")
    assert said[1] == "skipped beside train/ and test/: unsorted/"
    assert open_data("digits").left_out.lines() == []


def test_a_class_of_other_formats_says_which(tmp_path: Path) -> None:
    write_classes(tmp_path)
    (tmp_path / "wasp").mkdir()
    (tmp_path / "wasp" / "1.heic").write_text("x")
    with pytest.raises(InputError, match=r"wasp: the class folder contains no images, only 1 \.heic: PNG, JPEG"):
        open_data(str(tmp_path))


def test_a_long_list_is_cut() -> None:
    lines = LeftOut(tuple(BadFile(f"{number}.png", "empty") for number in range(LISTED + 7))).lines()[0].splitlines()
    assert len(lines) == LISTED + 2 and lines[-1] == "  - and 7 more"
