"""Types of the compiled ring convolution."""

from typing import overload

import numpy as np
from numpy.typing import NDArray

class Conv:
    def __init__(
        self,
        in_channels: int,
        height: int,
        width: int,
        out_channels: int,
        kernel_height: int,
        kernel_width: int,
        out_height: int,
        out_width: int,
        stride: int,
        dilation: int,
        pad_top: int,
        pad_left: int,
        ring_bits: int,
        weights: NDArray[np.int32],
    ) -> None: ...
    @property
    def path(self) -> str: ...
    @property
    def ring_bits(self) -> int: ...
    @overload
    def apply(self, tensor: NDArray[np.uint32], out: NDArray[np.uint32], threads: int = 0) -> None: ...
    @overload
    def apply(self, tensor: NDArray[np.uint64], out: NDArray[np.uint64], threads: int = 0) -> None: ...
