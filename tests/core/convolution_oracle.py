"""torch's integer convolution modulo 2^k, for any border: the truth for packed and ring convolutions."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from sphynx.core.conv_shape import ConvShape


def convolution(shape: ConvShape, x: NDArray[np.uint64], w: NDArray[np.int32], bits: int) -> NDArray[np.uint64]:
    """int64 convolution wraps modulo 2^64, so its low bits are exact."""
    span_y = shape.stride * (shape.out_height - 1) + shape.dilation * (shape.kernel_height - 1) + 1
    span_x = shape.stride * (shape.out_width - 1) + shape.dilation * (shape.kernel_width - 1) + 1
    field = np.zeros((shape.in_channels, span_y, span_x), np.uint64)
    rows = np.arange(span_y) - shape.pad_top
    columns = np.arange(span_x) - shape.pad_left
    inside_y = np.flatnonzero((rows >= 0) & (rows < shape.height))
    inside_x = np.flatnonzero((columns >= 0) & (columns < shape.width))
    field[:, inside_y[:, None], inside_x] = x[:, rows[inside_y][:, None], columns[inside_x]]
    out = torch.nn.functional.conv2d(
        torch.from_numpy(field.view(np.int64))[None],
        torch.from_numpy(w.astype(np.int64)),
        stride=shape.stride,
        dilation=shape.dilation,
    )
    result: NDArray[np.uint64] = out[0].numpy().view(np.uint64) & np.uint64(2**bits - 1)
    return result


def random_weights(rng: np.random.Generator, shape: ConvShape, bits: int = 8) -> NDArray[np.int32]:
    extents = (shape.out_channels, shape.in_channels, shape.kernel_height, shape.kernel_width)
    return rng.integers(-(2 ** (bits - 1)), 2 ** (bits - 1), extents).astype(np.int32)
