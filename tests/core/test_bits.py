"""The numpy side of bit planes, against numpy's own unpacking."""

from __future__ import annotations

import numpy as np
import pytest

from sphynx.core.bits import bit_values


@pytest.mark.parametrize("shape", [(3,), (2, 5), (4, 1, 2), (0,), (3, 0)])
def test_bits_of_planes_are_those_that_numpy_unpacks(shape: tuple[int, ...]) -> None:
    planes = np.random.default_rng(1).integers(0, 2**64, shape, np.uint64)
    unpacked = np.unpackbits(planes.view(np.uint8), axis=-1, bitorder="little")
    values = bit_values(planes)
    assert values.dtype == np.uint64
    assert np.array_equal(values, unpacked)
