"""Bound what a picture file may cost to read, before it is decoded (no torch).

A small file can stand for much work. Bounded here, so that what remains grows with the file's own length:

    pixels   each takes 4 to 20 bytes while it is decoded; those of most cameras fit
    parts    a PNG's chunks, a JPEG's segments, a TIFF's strips: Pillow handles them one by one
    passes   a JPEG's scans: a few bytes each, and each goes over all pixels
    tags     values of a TIFF's or EXIF's directory, which may overlap: Pillow before 13 copies each of them

Pillow itself bounds what a PNG's compressed text and profile become. The formats are those that folders of images may
hold; others, some of which start programs or need more bounds, are not tried. Of several frames the first is read.
"""

from __future__ import annotations

import io
import re
import struct
from dataclasses import dataclass
from typing import IO

from PIL import Image

from sphynx.errors import InputError

FORMATS = ("PNG", "JPEG", "BMP", "WEBP", "PPM", "TIFF")
MOST_PIXELS = 1 << 26
MOST_WEBP_PIXELS = MOST_PIXELS // 2  # its reader holds five copies
MOST_PARTS = 100_000
MOST_PIXEL_PASSES = 1 << 31
MOST_EXIF_BYTES = 1 << 20
MOST_EXIF_TEXT = 1 << 17  # letters

_PNG = b"\x89PNG\r\n\x1a\n"
_JPEG = b"\xff\xd8\xff"
_EXIF = b"Exif\0\0"
# FF00 is a pixel's 255, FFD0 to FFD7 are between pixels of one scan, and FFs may be repeated.
_JPEG_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
_JPEG_START, _JPEG_END, _JPEG_SCAN, _JPEG_APP1, _JPEG_ALONE = 0xD8, 0xD9, 0xDA, 0xE1, 0x01
_TIFF_VALUE_BYTES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2, 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8}
_TIFF_PARTS = (273, 324)  # where the strips are, or the tiles
_TIFF_DIRECTORIES = (34665, 34853, 40965)  # tags whose value is the place of a further directory
_MOST_COPIES = 4  # of a file's bytes as values of its tags
_TOO_MUCH_METADATA = "its metadata repeats the same bytes many times, or is too long"


@dataclass(frozen=True)
class Outline:
    """A file's structure, as far as it decides what reading costs."""

    parts: int = 0
    passes: int = 1
    has_overlapping_tags: bool = False


def outline(file: IO[bytes]) -> Outline:
    """Go through the structure of a PNG, JPEG or TIFF file without decoding; malformed ones are left to the decoder."""
    file.seek(0)
    start = file.read(8)
    if start == _PNG:
        found = _png_outline(file)
    elif start.startswith(_JPEG):
        found = _jpeg_outline(start + file.read())
    elif start.startswith((b"II", b"MM")):
        found = _directory_outline(file)
    else:
        found = Outline()
    file.seek(0)
    return found


def refuse_costly_structure(found: Outline, name: str) -> None:
    if found.parts > MOST_PARTS:
        _refuse(f"the file is in more than {MOST_PARTS:,} parts", name)
    if found.has_overlapping_tags:
        _refuse(_TOO_MUCH_METADATA, name)


def refuse_costly_pixels(opened: Image.Image, found: Outline, name: str) -> None:
    """Refuse what has too many pixels, or goes over them too often. `opened` is not loaded yet."""
    pixels, most = opened.width * opened.height, MOST_WEBP_PIXELS if opened.format == "WEBP" else MOST_PIXELS
    if pixels > most:
        _refuse(f"the image has {pixels:,} pixels; at most {most:,} are read", name)
    if found.passes * pixels > MOST_PIXEL_PASSES:
        _refuse(f"{found.passes:,} scans of {pixels:,} pixels are too many", name)


def refuse_costly_exif(loaded: Image.Image, name: str) -> None:
    """Refuse tags before they are parsed. `loaded` is so, since they may come after the pixels."""
    text = loaded.info.get("Raw profile type exif", "")  # hexadecimal, as ImageMagick writes it
    if _is_overlapping(loaded.info.get("exif", b"")) or len(text) > MOST_EXIF_TEXT:
        _refuse(_TOO_MUCH_METADATA, name)


def _refuse(what: str, name: str) -> None:
    raise InputError(what, where=name, remedy="Save it again as an ordinary PNG or JPEG file, or a smaller one.")


def _png_outline(file: IO[bytes]) -> Outline:
    for parts in range(MOST_PARTS + 1):
        head = file.read(8)
        if len(head) < 8:
            return Outline(parts)
        file.seek(struct.unpack(">I", head[:4])[0] + 4, io.SEEK_CUR)
    return Outline(MOST_PARTS + 1)


def _jpeg_outline(data: bytes) -> Outline:
    at, parts, scans, exif = 2, 0, 0, b""
    while parts <= MOST_PARTS and (marker := _JPEG_MARKER.search(data, at)):
        kind, at = marker[0][1], marker.end()
        if kind == _JPEG_END:
            break
        parts += 1
        if kind in (_JPEG_START, _JPEG_ALONE):
            continue
        length = int.from_bytes(data[at : at + 2], "big")
        content = data[at + 2 : at + length]
        if kind == _JPEG_APP1 and content.startswith(_EXIF) and len(exif) <= MOST_EXIF_BYTES:
            exif += content.removeprefix(_EXIF)  # a long one goes over several segments
        at += length
        scans += kind == _JPEG_SCAN
    return Outline(parts, max(scans, 1), _is_overlapping(exif))


def _is_overlapping(exif: bytes) -> bool:
    found = _directory_outline(io.BytesIO(exif.removeprefix(_EXIF)))
    return len(exif) > MOST_EXIF_BYTES or found.has_overlapping_tags


def _directory_outline(file: IO[bytes]) -> Outline:
    """Add up the tags of a TIFF, or of EXIF, which is one without pixels."""
    length = file.seek(0, io.SEEK_END)
    file.seek(0)
    start = file.read(16).ljust(16, b"\0")
    order = "<" if start.startswith(b"II") else ">"
    is_big = start[2] == 43
    place, number = struct.Struct(order + "IQ"[is_big]), struct.Struct(order + "HQ"[is_big])
    entry = struct.Struct(order + ("HHQQ" if is_big else "HHII"))
    left, parts, value_bytes = [place.unpack_from(start, 8 if is_big else 4)[0]], 0, 0
    for at in left:
        file.seek(at)
        (count,) = number.unpack(file.read(number.size).ljust(number.size, b"\0"))
        for _ in range(min(count, MOST_PARTS)):
            taken = file.read(entry.size)
            if len(taken) < entry.size:
                break
            tag, kind, values, value = entry.unpack(taken)
            size = values * _TIFF_VALUE_BYTES.get(kind, 0)
            if size > place.size and value + size <= length:  # others are not copied: cameras write wrong ones
                value_bytes += size
            if tag in _TIFF_PARTS:
                parts += values
            if tag in _TIFF_DIRECTORIES and value not in left:
                left.append(value)
        parts = max(parts, count)
    return Outline(parts, 1, value_bytes > _MOST_COPIES * length)
