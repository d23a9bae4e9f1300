"""DICOM files as pictures: the first frame, through its window, as grey or colours of eight bits (no torch).

DICOM PS3.3 C.11: stored values go through the rescale (or the modality LUT), then through the first window, or the
VOI LUT where there is no window, to 0 .. 255; without either, from the darkest to the brightest value. MONOCHROME1 is
turned round. Pixels are uncompressed or baseline JPEG: other compressions need decoders that are not bounded here.

Nothing is trusted: pydicom sees the first 4 MiB at most, never inflates, and reads tags that are named below alone; the
pixels' length follows from rows and columns, which are bounded before.
"""

from __future__ import annotations

import io
import os
import struct
from collections.abc import Callable
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sphynx.data.picture_limits import MOST_PIXELS
from sphynx.errors import InputError, MissingPartError

MOST_HEADER_BYTES = 4 << 20
MOST_FRAME_BYTES = 1 << 28
WHITE = 255.0

_START, _MAGIC = 128, b"DICM"
_IMPLICIT, _EXPLICIT, _BIG_ENDIAN = "1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.2"
_JPEG = "1.2.840.10008.1.2.4.50"
_SYNTAXES = (_IMPLICIT, _EXPLICIT, _BIG_ENDIAN, _JPEG)
_TAGS = [
    "SamplesPerPixel", "PhotometricInterpretation", "PlanarConfiguration", "Rows", "Columns", "BitsAllocated",
    "BitsStored", "HighBit", "PixelRepresentation", "RescaleSlope", "RescaleIntercept", "ModalityLUTSequence",
    "WindowCenter", "WindowWidth", "VOILUTFunction", "VOILUTSequence",
]  # fmt: skip
_UNKNOWN_LENGTH = 0xFFFFFFFF
_JPEG_START = b"\xff\xd8\xff"
_ITEM = b"\xfe\xff\x00\xe0"

Values = NDArray[np.float64]


def is_dicom(file: IO[bytes]) -> bool:
    file.seek(0)
    start = file.read(_START + len(_MAGIC))
    file.seek(0)
    return start[_START:] == _MAGIC


def read_dicom(file: IO[bytes], name: str, read_jpeg: Callable[[IO[bytes], str], Image.Image]) -> Image.Image:
    """`read_jpeg` reads a JPEG file's bytes, bounded. Raises InputError, or what pydicom raises on malformed files."""
    syntax = _transfer_syntax(file, name)
    header, place = _header(file, name)
    shape = _shape(header, name)
    file.seek(place)
    values = (
        _jpeg_values(file, name, read_jpeg, shape) if syntax == _JPEG else _stored(file, header, shape, syntax, name)
    )
    if shape[2] == 3:
        return Image.fromarray(values.astype(np.uint8))
    grey = _windowed(values[:, :, 0].astype(np.float64), header)
    if header.PhotometricInterpretation == "MONOCHROME1":
        grey = WHITE - grey
    return Image.fromarray(np.round(grey).astype(np.uint8))


def _transfer_syntax(file: IO[bytes], name: str) -> str:
    """Read group 2, explicit and little-endian in every file, without pydicom, which would go on to inflate."""
    file.seek(_START + len(_MAGIC))
    left = MOST_HEADER_BYTES
    while left > 0:
        head = file.read(8)
        if len(head) < 8 or head[:2] != b"\x02\x00":
            break
        long = head[4:6] in (b"OB", b"UN", b"OW", b"UT")
        (length,) = struct.unpack("<I", file.read(4)) if long else struct.unpack("<H", head[6:])
        value = file.read(min(length, left))
        left -= len(head) + len(value)
        if head[2:4] == b"\x10\x00":
            syntax = value.rstrip(b"\0 ").decode("ascii", "replace")
            if syntax in _SYNTAXES:
                return syntax
            raise InputError(
                f"its pixels are compressed in a way that is not read ({syntax})",
                where=name,
                remedy="Save it uncompressed, by a tool such as gdcmconv or dcmdjpeg.",
            )
    raise InputError(
        "the DICOM file does not say its transfer syntax", where=name, remedy="Replace or remove this file."
    )


def _header(file: IO[bytes], name: str) -> tuple[Any, int]:
    """The tags before the pixels, and where these begin."""
    try:
        import pydicom
    except ModuleNotFoundError:
        raise MissingPartError("reading DICOM files needs the package pydicom", remedy="pip install pydicom") from None
    file.seek(0)
    start = io.BytesIO(file.read(MOST_HEADER_BYTES))
    header = pydicom.dcmread(start, stop_before_pixels=True, specific_tags=_TAGS)
    place = start.tell()
    start.seek(place)
    if start.read(4) not in (b"\xe0\x7f\x10\x00", b"\x7f\xe0\x00\x10"):
        raise InputError(
            f"there are no pixels in its first {MOST_HEADER_BYTES >> 20} MiB", where=name, remedy="Remove this file."
        )
    return header, place


def _shape(header: Any, name: str) -> tuple[int, int, int]:
    """Rows, columns, samples; refuses what is too large or of a kind that is not read."""
    rows, columns, samples = int(header.Rows), int(header.Columns), int(header.SamplesPerPixel)
    if not 0 < rows * columns <= MOST_PIXELS:
        raise InputError(
            f"the image has {rows * columns:,} pixels; at most {MOST_PIXELS:,} are read",
            where=name,
            remedy="Replace or remove this file.",
        )
    bits, stored, kind = int(header.BitsAllocated), int(header.BitsStored), str(header.PhotometricInterpretation)
    grey = samples == 1 and kind in ("MONOCHROME1", "MONOCHROME2")
    colour = samples == 3 and bits == 8 and kind in ("RGB", "YBR_FULL", "YBR_FULL_422")
    if not (grey or colour) or bits not in (8, 16) or not 0 < stored <= bits or int(header.HighBit) != stored - 1:
        raise InputError(
            f"its pixels are {samples} x {kind} of {stored} in {bits} bits, which is not read",
            where=name,
            remedy="Save it as MONOCHROME2 of 8 to 16 bits, or as RGB of 8.",
        )
    return rows, columns, samples


def _stored(
    file: IO[bytes], header: Any, shape: tuple[int, int, int], syntax: str, name: str
) -> NDArray[np.signedinteger[Any]]:
    """The first frame's stored values, [rows, columns, samples]."""
    order = ">" if syntax == _BIG_ENDIAN else "<"
    head = file.read(8)
    if syntax != _IMPLICIT:
        file.seek(4, os.SEEK_CUR)  # the length is in four bytes of their own, behind OB or OW
    bits, stored = int(header.BitsAllocated), int(header.BitsStored)
    if shape[2] == 3 and header.PhotometricInterpretation != "RGB":
        raise InputError("its colours are not RGB", where=name, remedy="Save it as RGB of 8 bits.")
    wanted = shape[0] * shape[1] * shape[2] * bits // 8
    content = file.read(wanted)
    if len(head) < 8 or len(content) < wanted:
        raise InputError("the image cannot be read (its pixels are cut off)", where=name, remedy="Replace this file.")
    words = np.frombuffer(content, f"{order}u{bits // 8}").astype(np.int64) & ((1 << stored) - 1)
    if int(header.PixelRepresentation) == 1:
        words = words - ((words >> (stored - 1)) << stored)
    rows, columns, samples = shape
    if samples == 3 and int(header.get("PlanarConfiguration", 0)) == 1:
        return words.reshape(samples, rows, columns).transpose(1, 2, 0)
    return words.reshape(shape)


def _jpeg_values(
    file: IO[bytes], name: str, read_jpeg: Callable[[IO[bytes], str], Image.Image], shape: tuple[int, int, int]
) -> NDArray[np.signedinteger[Any]]:
    """The first frame: an item with offsets, then items of JPEG bytes; one frame may be in several."""
    content = file.read(MOST_FRAME_BYTES)
    (length,) = struct.unpack("<I", content[8:12])
    at, parts = 12, list[bytes]()
    while length == _UNKNOWN_LENGTH and content[at : at + 4] == _ITEM:
        (size,) = struct.unpack("<I", content[at + 4 : at + 8])
        parts.append(content[at + 8 : at + 8 + size])
        at += 8 + size
    frame = b"".join(parts[1:])  # what follows a first frame's end is not looked at
    if not frame.startswith(_JPEG_START):
        raise InputError("it contains no JPEG image", where=name, remedy="Replace or remove this file.")
    picture = read_jpeg(io.BytesIO(frame), name).convert("L" if shape[2] == 1 else "RGB")
    pixels = np.asarray(picture).reshape(picture.height, picture.width, -1)
    if pixels.shape != shape:
        raise InputError(
            f"its JPEG image is {picture.width}x{picture.height}, its header says {shape[1]}x{shape[0]}",
            where=name,
            remedy="Replace or remove this file.",
        )
    return pixels.astype(np.int64)


def _windowed(values: Values, header: Any) -> Values:
    """From 0 for black to 255 for white."""
    from pydicom.pixels import apply_modality_lut, apply_voi

    if header.get("ModalityLUTSequence"):
        values = apply_modality_lut(values.astype(np.int64), header).astype(np.float64)
    else:
        values = values * float(header.get("RescaleSlope", 1)) + float(header.get("RescaleIntercept", 0))
    centre, width = (_first(header.get(name)) for name in ("WindowCenter", "WindowWidth"))
    if centre is not None and width is not None:
        return through_window(values, centre, width, str(header.get("VOILUTFunction", "LINEAR")))
    if header.get("VOILUTSequence"):
        bits = int(header.VOILUTSequence[0].LUTDescriptor[2])
        found: Values = np.asarray(apply_voi(values.astype(np.int64), header), np.float64)
        return (found * (WHITE / ((1 << bits) - 1))).clip(0.0, WHITE).astype(np.float64)
    darkest, brightest = float(values.min()), float(values.max())
    return (values - darkest) * (WHITE / max(brightest - darkest, 1e-9))


def through_window(values: Values, centre: float, width: float, function: str) -> Values:
    """PS3.3 C.11.2.1.2 and C.11.2.1.3."""
    if function == "SIGMOID":
        return WHITE / (1 + np.exp(-4 * (values - centre) / max(width, 1e-9)))
    if function != "LINEAR_EXACT":
        centre, width = centre - 0.5, width - 1
    if width <= 0:  # a threshold
        return np.where(values > centre, WHITE, 0.0)
    return (((values - centre) / width + 0.5) * WHITE).clip(0, WHITE)


def _first(value: Any) -> float | None:
    """Take the first of several windows: the one that is shown unless another is asked for."""
    if value is None or value == "":
        return None
    return float(value if isinstance(value, int | float | str) else value[0])
