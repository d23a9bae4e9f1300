"""How often each byte value occurs, and whether two such counts could be of the same source (chi-square).

The survival function is Wilson and Hilferty's normal approximation (PNAS 17, 1931), good to two digits at 255
degrees of freedom, which is what a page needs; the tests hold it to exact values.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

VALUES = 256

Counts = NDArray[np.int64]


def byte_counts(data: bytes) -> Counts:
    return np.bincount(np.frombuffer(data, np.uint8), minlength=VALUES)


def chi_square_same(counts: Counts) -> tuple[float, int]:
    """Test whether several histograms [sources, values] are alike: the statistic and its degrees of freedom. Values
    that never occur are left out."""
    seen = counts[:, counts.sum(0) > 0]
    expected = seen.sum(1, keepdims=True) * seen.sum(0, keepdims=True) / seen.sum()
    return float(((seen - expected) ** 2 / expected).sum()), (seen.shape[0] - 1) * (seen.shape[1] - 1)


def tail_probability(statistic: float, degrees: int) -> float:
    """Return the probability that a chi-square of that many degrees of freedom is at least this large."""
    if degrees == 0:
        return 1.0
    spread = 2 / (9 * degrees)
    deviation = ((statistic / degrees) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return math.erfc(deviation / math.sqrt(2)) / 2
