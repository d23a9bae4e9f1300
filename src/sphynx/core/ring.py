"""Linear layers on shares: exact convolution modulo 2^k with small integer weights, at plaintext speed."""

from __future__ import annotations

from dataclasses import asdict
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from sphynx.core import _native
from sphynx.core.conv_shape import ConvShape
from sphynx.errors import InputError

Element = TypeVar("Element", np.uint32, np.uint64)


def ring_dtype(ring_bits: int) -> type[np.uint32] | type[np.uint64]:
    """The narrowest element type that holds the ring: half the memory traffic up to 32 bits."""
    return np.uint32 if ring_bits <= 32 else np.uint64


class RingConv:
    """One convolution with fixed weights, prepared once. Elements may have any bits above the ring set."""

    def __init__(self, shape: ConvShape, ring_bits: int, weights: NDArray[np.int32]) -> None:
        expected = (shape.out_channels, shape.in_channels, shape.kernel_height, shape.kernel_width)
        if weights.shape != expected or weights.dtype != np.int32:
            raise InputError(
                f"weights are {weights.dtype} {weights.shape}, the shape needs int32 {expected}",
                where=str(shape),
                remedy="Pass the layer's quantised weights.",
            )
        self.shape = shape
        geometry = {key: value for key, value in asdict(shape).items() if key != "groups"}  # zeros among its weights
        self.native = _native.ring.Conv(**geometry, ring_bits=ring_bits, weights=np.ascontiguousarray(weights))

    def __call__(self, tensor: NDArray[Element], threads: int = 0) -> NDArray[Element]:
        """Convolve (in_channels, height, width) to (out_channels, out_height, out_width), the same element type."""
        shape = self.shape
        if tensor.shape != (shape.in_channels, shape.height, shape.width):
            raise InputError(
                f"the tensor has shape {tensor.shape}",
                where=str(shape),
                remedy="Pass the tensor that the convolution was made for.",
            )
        out = np.empty((shape.out_channels, shape.out_height, shape.out_width), tensor.dtype)
        self.native.apply(np.ascontiguousarray(tensor), out, threads)
        return out
