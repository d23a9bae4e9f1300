"""Bit planes of ring elements: row b of the planes holds bit b of every element, 64 elements a word."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sphynx.core import _native

Words = NDArray[np.uint64]

_BIT_NUMBERS = np.arange(64, dtype=np.uint64)


def plane_words(count: int) -> int:
    """Words in a plane of `count` bits; unused high bits of the last word are zero."""
    return (count + 63) // 64


def slice_bits(values: Words, width: int) -> Words:
    """The low `width` bits of each value, as planes of shape (width, plane_words)."""
    planes = np.empty((width, plane_words(values.size)), np.uint64)
    _native.slice_bits(values, width, planes)
    return planes


def unslice_bits(planes: Words, count: int) -> Words:
    """The inverse: `count` values from planes of shape (width, plane_words(count))."""
    values = np.empty(count, np.uint64)
    _native.unslice_bits(planes, planes.shape[0], values)
    return values


def bit_values(planes: Words) -> Words:
    """Unpack each bit of the planes into a number, in the last axis. numpy.unpackbits reads a table at an address
    that depends on the bits, which are secret."""
    return ((planes[..., None] >> _BIT_NUMBERS) & np.uint64(1)).reshape(*planes.shape[:-1], -1)


def pack_ring(values: Words, width: int) -> NDArray[np.uint8]:
    """The low `width` bits of each value back to back: what goes on the wire."""
    packed = np.empty((values.size * width + 7) // 8, np.uint8)
    _native.pack_ring(values, width, packed)
    return packed


def unpack_ring(packed: NDArray[np.uint8], width: int, count: int) -> Words:
    values = np.empty(count, np.uint64)
    _native.unpack_ring(packed, width, values)
    return values
