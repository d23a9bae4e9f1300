"""Changes of picture files that leave them well-formed, so that what lies behind checksums and lengths is reached.

Sizes, depths and colour types with pixels to match; frames; texts, profiles and tags that are long, or say that they
are; parts and scans again and again. ValueError: it is not such a file.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from tests.data.costly_pictures import SAMPLES, SIGNATURE, chunk, exif_segments, overlapping_tags, zeros

SIDES = (1, 1, 2, 3, 7, 64, 1000, 65_535, 100_000, 1_000_000, 4_000_000, 2**31 - 1)
DEPTHS = ((1, 0), (8, 0), (16, 0), (8, 2), (16, 2), (1, 3), (8, 3), (8, 4), (16, 4), (8, 6), (16, 6))
MOST_ROW_BYTES = 1 << 24  # of pixels that are made to match
REPEATS = (1, 2, 10, 1000)
NUMBERS = (0, 1, 2, 255, 65_535, 10**6, 2**31 - 1, 2**32 - 1)

Part = tuple[bytes, bytes]


def png_changed(data: bytes, _: bytes, rng: random.Random) -> bytes:
    parts = _png_parts(data)
    changes: tuple[Callable[[list[Part], random.Random], list[Part]], ...] = (
        _shaped,
        _shaped,
        _with_chunks,
        _with_chunks,
        _shuffled,
        _content_changed,
    )
    changed = rng.choice(changes)(parts, rng)
    return SIGNATURE + b"".join(chunk(kind, content) for kind, content in changed)


def _png_parts(data: bytes) -> list[Part]:
    if not data.startswith(SIGNATURE + struct.pack(">I4s", 13, b"IHDR")):
        raise ValueError("it is not a PNG")
    parts, at = [], len(SIGNATURE)
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        parts.append((kind, data[at + 8 : at + 8 + length]))
        at += 12 + length
    return parts


def _shaped(parts: list[Part], rng: random.Random) -> list[Part]:
    """Another size or depth, black."""
    (_, head), *others = parts
    width, height, bits, colour, *rest = struct.unpack(">IIBBBBB", head)
    width, height = rng.choice(((rng.choice(SIDES), height), (width, rng.choice(SIDES)), (1, rng.choice(SIDES))))
    if rng.random() < 0.5:
        bits, colour = rng.choice(DEPTHS)
    row_bytes = height * (1 + (width * bits * SAMPLES.get(colour, 1) + 7) // 8)
    if row_bytes <= MOST_ROW_BYTES:
        kept = [part for part in others if part[0] not in (b"IDAT", b"PLTE", b"IEND")]
        pixels = [(b"PLTE", bytes(6)), (b"IDAT", zeros(row_bytes)), (b"IEND", b"")]
        others = kept + pixels[colour != 3 :]
    return [(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, *rest)), *others]


def _with_chunks(parts: list[Part], rng: random.Random) -> list[Part]:
    long = zeros(1 << rng.choice((4, 10, 20, 24)))
    frame = struct.pack(">IIIIIHHBB", 0, rng.choice(SIDES), rng.choice(SIDES), 0, 0, 1, 0, rng.randrange(4), 0)
    made = rng.choice(
        (
            (b"zTXt", b"a\0\0" + long),
            (b"iTXt", b"a\0\1\0\0\0" + long),
            (b"zTXt", b"Raw profile type exif\0\0" + long),
            (b"iCCP", b"a\0\0" + long),
            (b"eXIf", overlapping_tags(rng.choice((1, 100, 3000)), 60_000)),
            (b"acTL", struct.pack(">II", rng.choice(NUMBERS), 0)),
            (b"fcTL", frame),
            (b"tRNS", bytes(rng.choice((1, 2, 6, 256)))),
            (b"prVt", b""),
        )
    )
    at = rng.randint(1, len(parts))
    return parts[:at] + [made] * rng.choice(REPEATS if len(made[1]) < 100 else (1, 2)) + parts[at:]


def _shuffled(parts: list[Part], rng: random.Random) -> list[Part]:
    at, to = rng.randrange(len(parts)), rng.randrange(len(parts))
    moved = parts[:at] + parts[at + 1 :]
    return rng.choice((moved, [*moved[:to], parts[at], *moved[to:]], [*parts, parts[at]]))


def _content_changed(parts: list[Part], rng: random.Random) -> list[Part]:
    """One byte, with a checksum to match."""
    at = rng.randrange(len(parts))
    kind, content = parts[at]
    place = rng.randint(0, len(content))
    changed = content[:place] + rng.randbytes(1) + content[place + 1 :]
    return [*parts[:at], (kind, changed), *parts[at + 1 :]]


def jpeg_changed(data: bytes, _: bytes, rng: random.Random) -> bytes:
    frame = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
    scan = data.rfind(b"\xff\xda")
    if not data.startswith(b"\xff\xd8\xff") or frame < 0 or scan < 0:
        raise ValueError("it is not a JPEG")
    change = rng.randrange(4)
    if change == 0:
        sides = struct.pack(">HH", *(rng.choice(SIDES) & 0xFFFF for _ in range(2)))
        return data[: frame + 5] + sides + data[frame + 9 :]
    if change == 1:
        return data[:-2] + data[scan:-2] * rng.choice(REPEATS) + data[-2:]
    if change == 2:
        return (
            data[:2]
            + exif_segments(overlapping_tags(rng.choice((1, 100, 3000)), rng.choice((60_000, 90_000))))
            + data[2:]
        )
    return data[:2] + b"\xff\xfe\0\2" * rng.choice(REPEATS) + data[2:]


def tiff_changed(data: bytes, _: bytes, rng: random.Random) -> bytes:
    """One tag of the first directory: its kind, how many values it has, or its value."""
    if not data.startswith(b"II*\0") or len(data) < 10:
        raise ValueError("it is not a TIFF")
    (directory,) = struct.unpack_from("<I", data, 4)
    (count,) = struct.unpack_from("<H", data.ljust(directory + 2, b"\0"), directory)
    entry = directory + 2 + 12 * rng.randrange(max(count, 1))
    place, form = rng.choice(((entry + 2, "<H"), (entry + 4, "<I"), (entry + 8, "<I")))
    value = struct.pack(form, rng.choice(NUMBERS) & (0xFFFF if form == "<H" else 0xFFFFFFFF))
    return data[:place] + value + data[place + len(value) :]
