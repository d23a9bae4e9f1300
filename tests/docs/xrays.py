"""A few made-up grey pictures that are named as X-rays of patients are: bright spots and bands tell the classes."""

from pathlib import Path

import numpy as np
from PIL import Image

KINDS = {
    "bacterial pneumonia": "person{}_bacteria_{}",
    "normal": "IM-{:04}-{:04}",
    "viral pneumonia": "person{}_virus_{}",
}


def write_xrays(folder: Path, patients: int = 8, side: int = 40) -> Path:
    """Two pictures of a patient, wider than high; `patients` of each class to train on, half as many to test with."""
    random = np.random.default_rng(0)
    for split, first, count in (("train", 0, patients), ("test", patients, patients // 2)):
        for kind, (name, pattern) in enumerate(KINDS.items()):
            (folder / split / name).mkdir(parents=True)
            for patient in range(first, first + count):
                for number in range(2):
                    pixels = random.integers(0, 90, (side, side + 8))
                    place = slice(6 + 10 * kind, 14 + 10 * kind)
                    pixels[place] += 110
                    file = folder / split / name / f"{pattern.format(100 * kind + patient, number)}.png"
                    Image.fromarray(pixels.astype(np.uint8)).save(file)
    return folder
