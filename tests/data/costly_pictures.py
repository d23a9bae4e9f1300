"""Small picture files that stand for much work: long, huge, deep, in many parts, passes or tags.

`python -m tests.data.costly_pictures SIDE` reads each for a network of that side, in a process of its own with
little memory, and prints a line: its kind, by how many MiB the process grew, and what became of it.
"""

from __future__ import annotations

import io
import os
import resource
import struct
import sys
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

from PIL import Image

from sphynx.data.picture import read_upright
from sphynx.errors import InputError
from sphynx.service.pictures import pixels_of
from sphynx.space.tally import Shape
from tests.program.programs import program_reading

SIGNATURE = b"\x89PNG\r\n\x1a\n"
SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}  # of a pixel, by PNG's colour type


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def zeros(count: int) -> bytes:
    """Deflate `count` zero bytes."""
    packer, block = zlib.compressobj(9), bytes(1 << 20)
    parts = [packer.compress(block) for _ in range(count >> 20)] + [packer.compress(block[: count % (1 << 20)])]
    return b"".join(parts) + packer.flush()


def black_png(width: int, height: int, bits: int = 1, colour: int = 0, extra: bytes = b"") -> bytes:
    """`extra` are chunks before the pixels."""
    head = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    palette = chunk(b"PLTE", bytes(6)) if colour == 3 else b""
    rows = zeros(height * (1 + (width * bits * SAMPLES[colour] + 7) // 8))
    return SIGNATURE + chunk(b"IHDR", head) + palette + extra + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def overlapping_tags(count: int, length: int) -> bytes:
    """A TIFF directory whose tags all have the same bytes as their value, nearly all there are."""
    tags = b"".join(struct.pack("<HHII", 1000 + number, 7, length - 1, 1) for number in range(count))
    return (b"II*\0" + struct.pack("<IH", 8, count) + tags + bytes(4)).ljust(length, b"\0")


def tiff_of_strips(count: int) -> bytes:
    """Each of one byte, at offsets that are bytes."""
    here = 8 + 2 + 12 * 9 + 4
    values = [(256, 4, 1, 1), (257, 4, 1, count), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 1, count, here)]
    values += [(277, 3, 1, 1), (278, 3, 1, 1), (279, 1, count, here)]
    tags = b"".join(struct.pack("<HHII", *each) for each in values)
    return b"II*\0" + struct.pack("<IH", 8, len(values)) + tags + bytes(4) + bytes(count)


def jpeg(width: int, height: int, *, extra: bytes = b"", scans: int = 0) -> bytes:
    """`extra` are segments before all others; the last scan comes `scans` more times."""
    stored = io.BytesIO()
    Image.new("L", (width, height)).save(stored, "JPEG", progressive=True)
    made = stored.getvalue()
    last = made[made.rindex(b"\xff\xda") : -2]
    return made[:2] + extra + made[2:-2] + last * scans + b"\xff\xd9"


def exif_segments(content: bytes) -> bytes:
    pieces = [b"Exif\0\0" + content[at : at + 65000] for at in range(0, len(content), 65000)]
    return b"".join(b"\xff\xe1" + struct.pack(">H", 2 + len(piece)) + piece for piece in pieces)


def saved(kind: str, mode: str, width: int, height: int, **settings: object) -> bytes:
    stored = io.BytesIO()
    Image.new(mode, (width, height)).save(stored, kind, **settings)
    return stored.getvalue()


READ: dict[str, Callable[[], bytes]] = {
    "tall": partial(black_png, 1, 1_000_000),
    "wide": partial(black_png, 1_000_000, 1),
    "tall-palette": partial(black_png, 2, 400_000, 1, 3),
    "wide-transparent": partial(black_png, 400_000, 3, 16, 6),
    "wide-tiff": partial(saved, "TIFF", "RGB", 60_000, 1, compression="tiff_adobe_deflate"),
    "wide-webp": partial(saved, "WEBP", "RGB", 16_000, 1),
    "large": partial(black_png, 8192, 8192),
    "many-frames": lambda: black_png(9, 9, extra=chunk(b"acTL", struct.pack(">II", 0x7FFFFFFF, 0))),
}
REFUSED: dict[str, tuple[str, Callable[[], bytes]]] = {
    "too-large": ("67,117,056 pixels; at most", partial(black_png, 8192, 8193)),
    "too-tall": ("70,000,000 pixels; at most", partial(black_png, 1, 70_000_000)),
    "too-large-webp": (
        "33,562,624 pixels; at most",
        partial(saved, "WEBP", "RGB", 8192, 4097, lossless=True, quality=0, method=0),
    ),
    "long-text": ("cannot be read", lambda: black_png(9, 9, extra=chunk(b"zTXt", b"a\0\0" + zeros(1 << 24)))),
    "long-profile": ("cannot be read", lambda: black_png(9, 9, extra=chunk(b"iCCP", b"a\0\0" + zeros(1 << 24)))),
    "many-chunks": ("in more than 100,000 parts", lambda: black_png(9, 9, extra=chunk(b"prVt", b"") * 100_000)),
    "many-segments": ("in more than 100,000 parts", lambda: jpeg(9, 9, extra=b"\xff\xfe\0\2" * 100_000)),
    "many-strips": ("in more than 100,000 parts", partial(tiff_of_strips, 100_001)),
    "many-scans": ("scans of 4,000,000 pixels", partial(jpeg, 2000, 2000, scans=600)),
    "tags-of-a-png": ("metadata", lambda: black_png(9, 9, extra=chunk(b"eXIf", overlapping_tags(10_000, 200_000)))),
    "tags-of-a-jpeg": ("metadata", lambda: jpeg(9, 9, extra=exif_segments(overlapping_tags(10_000, 200_000)))),
    "tags-of-a-tiff": ("metadata", partial(overlapping_tags, 10_000, 200_000)),
    "postscript": ("PNG, JPEG, BMP", lambda: b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n"),
}
MEMORY_BYTES = 1 << 30  # of address space, besides what the process has


def _read(kind: str, data: bytes, side: int) -> None:
    program = program_reading(Shape(3, side, side), 7 / 8)
    held = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY_BYTES, -1))
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        outcome = str(pixels_of(read_upright(io.BytesIO(data), kind), program).shape)
    except InputError as error:
        outcome = str(error)
    except MemoryError:
        outcome = "out of memory"
    print(kind, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib) >> 10, outcome, flush=True)


if __name__ == "__main__":
    for kind, make in {**READ, **{kind: made for kind, (_, made) in REFUSED.items()}}.items():
        if (child := os.fork()) == 0:
            _read(kind, make(), int(sys.argv[1]))
            os._exit(0)
        os.waitpid(child, 0)
