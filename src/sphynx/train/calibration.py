"""Probabilities that are meant: the temperature T that suits images which the network did not learn from (Guo et al.
2017), softmax(z / T). Dividing the head's weights by T makes it part of the network: logits, and whatever is made of
them, keep their order.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

LEAST, MOST = 0.01, 100.0  # temperatures
_HALVINGS = 60


def fit_temperature(logits: NDArray[np.float64], labels: NDArray[np.int64]) -> float:
    """Minimise the labels' cross-entropy over T, from 0.01 to 100.

    It is convex in 1/T, and its slope there is the mean over the images of sum_k p_k z_k - z_label.
    """
    if not len(labels):
        return 1.0
    right = logits[np.arange(len(labels)), labels]

    def slope(inverse: float) -> float:
        shifted = inverse * (logits - logits.max(1, keepdims=True))
        powers = np.exp(shifted)
        expected = (powers * logits).sum(1) / powers.sum(1)
        return float((expected - right).mean())

    low, high = math.log(1 / MOST), math.log(1 / LEAST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if slope(math.exp(middle)) < 0 else (low, middle)
    return math.exp(-(low + high) / 2)
