"""A trained network's own answers, in single precision by torch on the CPU, and how long one image takes."""

from __future__ import annotations

import statistics
import time

import numpy as np
import torch
from numpy.typing import NDArray

from sphynx.network.trained import TrainedNetwork

REPEATS = 20


def answer_in_the_clear(
    network: TrainedNetwork, pixels: NDArray[np.uint8], repeats: int = REPEATS
) -> tuple[NDArray[np.float32], float]:
    """Logits [n, classes] of uint8 images [n, channels, height, width], and the median seconds for one of them."""
    mean, std = (torch.tensor(values).reshape(1, -1, 1, 1) for values in (network.mean, network.std))
    x = (torch.from_numpy(pixels).float() / 255 - mean) / std
    seconds = []
    with torch.inference_mode():
        logits = network.module(x).numpy()  # the first pass of a network is slower than others
        for _ in range(repeats):
            start_s = time.monotonic()
            network.module(x[:1])
            seconds.append(time.monotonic() - start_s)
    return logits, statistics.median(seconds)
