"""Data sets: opened by name or path."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, overload

from sphynx.data.images import Data
from sphynx.data.open import open_any
from sphynx.data.streamed import StreamedData


@overload
def open_data(
    spec: str | Path,
    *,
    image_size: int | None = None,
    stream: Literal[False] = False,
    skip_bad: bool = False,
    groups: str | None = None,
) -> Data: ...
@overload
def open_data(
    spec: str | Path,
    *,
    image_size: int | None = None,
    stream: Literal[True],
    skip_bad: bool = False,
    groups: str | None = None,
) -> StreamedData: ...
@overload
def open_data(
    spec: str | Path,
    *,
    image_size: int | None = None,
    stream: bool,
    skip_bad: bool = False,
    groups: str | None = None,
) -> Data | StreamedData: ...
def open_data(
    spec: str | Path,
    *,
    image_size: int | None = None,
    stream: bool = False,
    skip_bad: bool = False,
    groups: str | None = None,
) -> Data | StreamedData:
    """ "digits", a name from `sphynx data ls`, or a path: an archive, or a folder of class folders.

    `image_size` resizes the images of a folder; `stream` leaves them on the disk and reads them while they are used.
    Files that cannot be read are an error that names all of them; `skip_bad` leaves them out. `left_out` says what was.
    `groups` says which images belong together, such as those of a patient, and are held out together or not at all: a
    regular expression for CLASS/FILE, or a .csv file of FILE,GROUP.

        >>> data = sphynx.open_data("digits")
        >>> data.image, data.classes, len(data.train), len(data.test)
        ((1, 8, 8), 10, 1438, 359)
    """
    return open_any(str(spec), image_size=image_size, stream=stream, skip_bad=skip_bad, groups=groups)


def as_data(data: Data | str | Path) -> Data:
    """Open data that are given by name or path."""
    return open_data(data) if isinstance(data, str | Path) else data
