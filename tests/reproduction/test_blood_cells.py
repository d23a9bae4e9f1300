"""Cells cut out of a made-up picture with boxes as Pascal VOC writes them."""

from pathlib import Path

from PIL import Image
from reproduction.blood_cells import SIDES, SIZE, cut_cells, square_around

BOXES = {"RBC": (10, 20, 30, 40), "Platelets": (0, 0, 6, 4), "WBC": (50, 50, 50, 60)}  # the last has no extent


def write_data_set(folder: Path, *, tested: str) -> Path:
    for name in ("Annotations", "JPEGImages", "ImageSets/Main"):
        (folder / name).mkdir(parents=True)
    (folder / "ImageSets/Main/test.txt").write_text(tested + "\n")
    objects = "".join(
        f"<object><name>{name}</name><bndbox>{write_sides(box)}</bndbox></object>" for name, box in BOXES.items()
    )
    for name in ("a", "b"):
        (folder / "Annotations" / f"{name}.xml").write_text(f"<annotation>{objects}</annotation>")
        Image.new("RGB", (80, 60), "white").save(folder / "JPEGImages" / f"{name}.jpg")
    return folder


def write_sides(box: tuple[int, ...]) -> str:
    return "".join(f"<{side}>{value}</{side}>" for side, value in zip(SIDES, box, strict=True))


def test_every_box_with_an_extent_is_cut_into_the_folder_of_its_class_and_split(tmp_path: Path) -> None:
    counts = cut_cells(write_data_set(tmp_path / "voc", tested="b"), tmp_path / "cells")
    assert counts == {f"{split}/{name}": 1 for split in ("train", "test") for name in ("red cell", "platelet")}
    written = sorted(str(file.relative_to(tmp_path / "cells")) for file in (tmp_path / "cells").rglob("*.png"))
    assert written == [
        "test/platelet/b-1.png",
        "test/red cell/b-0.png",
        "train/platelet/a-1.png",
        "train/red cell/a-0.png",
    ]
    assert Image.open(tmp_path / "cells/train/red cell/a-0.png").size == (SIZE, SIZE)


def test_a_square_has_the_centre_of_its_box_and_a_margin() -> None:
    assert square_around((10, 20, 30, 40)) == (8, 18, 32, 42)
    assert square_around((0, 0, 6, 4)) == (-1, -2, 7, 6)
