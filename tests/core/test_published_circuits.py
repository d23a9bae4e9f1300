"""Published Bristol Fashion circuits, garbled and evaluated, against FIPS 197, SHA-256 and integers.

The files are not ours to ship: SPHYNX_BRISTOL_CIRCUITS names a folder that holds them (docs/symmetric-core.md says
where they come from); without it, and for a file that is not in it, tests are skipped.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from sphynx.core import garbling
from tests.core.aes_vectors import FIPS_197_128, FIPS_197_256
from tests.core.test_garbling import run_garbled

VARIABLE = "SPHYNX_BRISTOL_CIRCUITS"
WORD = 2**64
INTEGERS = [0, 1, 2, 3, WORD - 1, WORD - 2, WORD // 2, WORD // 2 - 1, 0x0123456789ABCDEF, 0xFEDCBA9876543210]


def published(name: str) -> garbling.Circuit:
    folder = os.environ.get(VARIABLE)
    if not folder:
        pytest.skip(f"{VARIABLE} names no folder of Bristol Fashion circuits")
    file = Path(folder) / name
    if not file.is_file():
        pytest.skip(f"{file} is not there")
    return garbling.Circuit.read_bristol(file.read_text())


def outputs_of(circuit: garbling.Circuit, instances: Sequence[Sequence[int]]) -> list[list[int]]:
    """Outputs of many instances. A value is an integer whose lowest bit is the value's first wire."""

    def planes_of(values: Sequence[int], width: int) -> np.ndarray:
        bits = np.array([[value >> bit & 1 for value in values] for bit in range(width)], np.uint8)
        padded = np.pad(bits, ((0, 0), (0, -len(values) % 64)))
        return np.packbits(padded, axis=1, bitorder="little").view(np.uint64)

    columns = zip(*instances, strict=True)
    planes = np.concatenate([planes_of(c, w) for c, w in zip(columns, circuit.input_widths, strict=True)])
    output_planes = run_garbled(circuit, planes, len(instances))
    bits = np.unpackbits(output_planes.view(np.uint8), axis=1, bitorder="little")[:, : len(instances)]
    ends = np.cumsum(circuit.output_widths)[:-1]
    values = [[sum(int(b) << i for i, b in enumerate(one)) for one in part.T] for part in np.split(bits, ends)]
    return [list(outputs) for outputs in zip(*values, strict=True)]


@pytest.mark.parametrize(("name", "vectors"), [("aes_128.txt", FIPS_197_128), ("aes_256.txt", FIPS_197_256)])
def test_aes(name: str, vectors: list[tuple[str, str, str]]) -> None:
    """The first wire is the lowest bit of the last byte: hexadecimal as it is printed is the integer."""
    outputs = outputs_of(published(name), [(int(key, 16), int(plain, 16)) for key, plain, _ in vectors])
    assert [f"{value:032x}" for (value,) in outputs] == [cipher for _, _, cipher in vectors]


def test_sha256() -> None:
    """One padded block from the initial state."""
    state = bytes.fromhex("6a09e667bb67ae853c6ef372a54ff53a510e527f9b05688c1f83d9ab5be0cd19")
    messages = [b"", b"abc", bytes(range(55))]
    blocks = [m + b"\x80" + bytes(55 - len(m)) + struct.pack(">Q", 8 * len(m)) for m in messages]
    instances = [(int.from_bytes(block), int.from_bytes(state)) for block in blocks]
    outputs = outputs_of(published("sha256.txt"), instances)
    assert [value.to_bytes(32) for (value,) in outputs] == [hashlib.sha256(m).digest() for m in messages]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("adder64.txt", lambda a, b: (a + b) % WORD),
        ("sub64.txt", lambda a, b: (a - b) % WORD),
        ("mult64.txt", lambda a, b: a * b % WORD),
    ],
)
def test_integers(name: str, expected: Callable[[int, int], int]) -> None:
    pairs = [(a, b) for a in INTEGERS for b in INTEGERS]
    assert outputs_of(published(name), pairs) == [[expected(a, b)] for a, b in pairs]
