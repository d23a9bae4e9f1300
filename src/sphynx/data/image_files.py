"""Which files of a folder are images, by their names, and what is left out of a data set (no torch, no Pillow)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff", ".dcm", ".dicom")
READ = "PNG, JPEG, BMP, WebP, PPM, PGM, TIFF and DICOM are read"
LISTED = 100  # bad files in one message; `sphynx data show --skip-bad --json` lists all


@dataclass(frozen=True)
class BadFile:
    """A file that looked like an image and cannot be read."""

    name: str
    why: str


@dataclass(frozen=True)
class LeftOut:
    """The files and folders of a data set's folder that are not part of the data."""

    bad: tuple[BadFile, ...] = ()  # with `skip_bad`; otherwise they are an error
    formats: Mapping[str, int] = field(default_factory=dict)  # files of other formats, by ending ("" for none)
    folders: tuple[str, ...] = ()  # beside train/ and test/

    def __add__(self, other: LeftOut) -> LeftOut:
        counts = Counter(self.formats) + Counter(other.formats)
        return LeftOut(self.bad + other.bad, dict(counts), self.folders + other.folders)

    def lines(self) -> list[str]:
        """Lines for the user; none where nothing was left out."""
        said = []
        if self.bad:
            said.append(f"left out {count_of(len(self.bad), 'image')} that cannot be read:\n{listed(self.bad)}")
        if self.formats:
            said.append(f"skipped {describe_formats(self.formats)}: {READ}")
        if self.folders:
            said.append(f"skipped beside train/ and test/: {', '.join(name + '/' for name in self.folders)}")
        return said


NOTHING = LeftOut()


def find_images(folder: Path) -> tuple[list[Path], Counter[str]]:
    """All images below a folder, sorted, and how many other files there are of each ending.

    What is hidden does not count: copies in .ipynb_checkpoints or .thumbnails would be test images as well. A link to
    nowhere, such as to a file that was not fetched, does: it is an image that cannot be read.
    """
    found = [path for path in sorted(folder.rglob("*")) if not _is_hidden(path.relative_to(folder))]
    files = [path for path in found if path.is_file() or (path.is_symlink() and not path.exists())]
    images = [path for path in files if path.suffix.lower() in SUFFIXES]
    return images, Counter(path.suffix.lower() for path in files if path.suffix.lower() not in SUFFIXES)


def describe_formats(formats: Mapping[str, int]) -> str:
    """12 .heic, 3 .gif and 1 without an ending"""
    ordered = sorted(formats.items(), key=lambda item: (-item[1], item[0]))
    words = [f"{number:,} {ending or 'without an ending'}" for ending, number in ordered]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def listed(bad: Sequence[BadFile]) -> str:
    lines = [f"  - {file.name}: {file.why}" for file in bad[:LISTED]]
    return "\n".join([*lines, *([f"  - and {len(bad) - LISTED:,} more"] if len(bad) > LISTED else [])])


def count_of(number: int, thing: str) -> str:
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)
