"""A safetensors file with numbers that safetensors knows and numpy does not."""

from __future__ import annotations

import json
import struct
from pathlib import Path

FOREIGN_KINDS = {"BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1}  # bytes of a number


def change_kind(file: Path, kind: str) -> None:
    """Rewrites the header: the first array becomes bytes of `kind`; the rest and the data stay."""
    raw = file.read_bytes()
    (size,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8 : 8 + size])
    array = next(array for name, array in header.items() if name != "__metadata__")
    first, last = array["data_offsets"]
    array |= {"dtype": kind, "shape": [(last - first) // FOREIGN_KINDS[kind]]}
    text = json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + raw[8 + size :])
