"""Cut single cells out of the pictures of blood of the BCCD data set, into folders of classes.

The data set (`Shenggan/BCCD_Dataset` on GitHub, MIT licence) marks red cells, white cells and platelets by boxes, as
Pascal VOC does. Each box becomes a square picture of the cell amid its neighbourhood, named by the picture that it is
from, so that cells of one picture can be held out together.

    python -m reproduction.blood_cells BCCD_Dataset/BCCD -o cells
"""

from __future__ import annotations

import argparse
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL import Image

NAMES = {"RBC": "red cell", "WBC": "white cell", "Platelets": "platelet"}
MARGIN = 1.2  # of the longer side of the box
SIZE = 64
SIDES = ("xmin", "ymin", "xmax", "ymax")
Box = tuple[int, int, int, int]


def cut_cells(source: Path, out: Path) -> Counter[str]:
    """Write train/ and test/ as the data set divides its pictures; return how many cells there are of each class."""
    tested = set((source / "ImageSets/Main/test.txt").read_text().split())
    written = Counter[str]()
    for file in sorted((source / "Annotations").glob("*.xml")):
        with Image.open(source / "JPEGImages" / f"{file.stem}.jpg") as opened:
            picture = opened.convert("RGB")
        split = "test" if file.stem in tested else "train"
        for number, (name, box) in enumerate(read_boxes(file)):
            folder = out / split / name
            folder.mkdir(parents=True, exist_ok=True)
            picture.crop(square_around(box)).resize((SIZE, SIZE), Image.Resampling.BOX).save(
                folder / f"{file.stem}-{number}.png"
            )
            written[f"{split}/{name}"] += 1
    return written


def read_boxes(file: Path) -> Iterator[tuple[str, Box]]:
    """Yield the class and the box of each cell; boxes without an extent, of which there are some, are left out."""
    for found in ElementTree.parse(file).getroot().iter("object"):
        left, top, right, bottom = (
            int(found.findtext(f"bndbox/{side}", "")) for side in ("xmin", "ymin", "xmax", "ymax")
        )
        if right > left and bottom > top:
            yield NAMES[found.findtext("name", "")], (left, top, right, bottom)


def square_around(box: Box) -> Box:
    """Return a square about the box; beyond the picture's border there is black."""
    left, top, right, bottom = box
    side = max(8, round(MARGIN * max(right - left, bottom - top)))
    x, y = (left + right - side) // 2, (top + bottom - side) // 2
    return x, y, x + side, y + side


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m reproduction.blood_cells", description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path, help="the folder with Annotations, ImageSets and JPEGImages")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args(words)
    for name, count in sorted(cut_cells(options.source, options.out).items()):
        print(f"{name}: {count:,}")


if __name__ == "__main__":
    main()
