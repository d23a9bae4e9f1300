"""Convolutions with kernels of 3x3 in real numbers, by a quarter of the products (Lavin and Gray, arXiv:1509.09308).

Tiles of 6x6 pixels, which overlap by two, give 4x4 outputs each: kernels and tiles are transformed, multiplied element
by element of a tile, which is a matrix product over the channels, and transformed back. In double precision that is off
by some 10^-14 of the largest number, as a sum in another order is.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from sphynx.program.convolve import Array
from sphynx.program.steps import Term

_OUT, _IN = 4, 6
_TILE = np.array(
    [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ]
)
_KERNEL = np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24
_BACK = np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]])
_TILE_2D, _BACK_2D = (np.kron(one, one).astype(np.float64) for one in (_TILE, _BACK))

_FEWEST_CHANNELS = 16  # with fewer, the transforms cost what the products save
_FEWEST_OUTPUTS = 144  # of a channel: with fewer tiles than weights of one kernel, reading these takes the time


def pays(weights: Array, term: Term, size: tuple[int, int]) -> bool:
    """Return whether this convolution can be computed so, and takes less time."""
    is_plain = weights.shape[2:] == (3, 3) and (term.stride, term.dilation, term.groups) == (1, 1, 1)
    return is_plain and min(weights.shape[:2]) >= _FEWEST_CHANNELS and size[0] * size[1] >= _FEWEST_OUTPUTS


class TiledKernel:
    """The weights of such a convolution, transformed; called as `convolve.Kernel` is."""

    def __init__(self, weights: Array, term: Term) -> None:
        self.top, self.left = term.pad_top, term.pad_left
        transformed = np.einsum("ia,jb,ocab->ijoc", _KERNEL, _KERNEL, weights)
        self.matrices: Array = np.ascontiguousarray(transformed).reshape(_IN**2, *weights.shape[:2])

    def __call__(self, x: Array, size: tuple[int, int]) -> Array:
        """x [n, channels, height, width] to [n, out channels, *size]."""
        images, channels = x.shape[:2]
        rows, columns = (-(-length // _OUT) for length in size)
        tiles = self._tiles(x, rows, columns).reshape(_IN**2, -1)
        products = self.matrices @ (_TILE_2D @ tiles).reshape(_IN**2, channels, -1)
        outputs = products.shape[1]
        made = (_BACK_2D @ products.reshape(_IN**2, -1)).reshape(_OUT, _OUT, outputs, images, rows, columns)
        whole = made.transpose(3, 2, 4, 0, 5, 1).reshape(images, outputs, _OUT * rows, _OUT * columns)
        return np.ascontiguousarray(whole[:, :, : size[0], : size[1]])

    def _tiles(self, x: Array, rows: int, columns: int) -> Array:
        """[6, 6, channels, n, rows, columns]."""
        padded = np.zeros((x.shape[1], x.shape[0], _OUT * rows + 2, _OUT * columns + 2))
        to_rows, from_rows = _overlap(self.top, x.shape[2], padded.shape[2])
        to_columns, from_columns = _overlap(self.left, x.shape[3], padded.shape[3])
        padded[:, :, to_rows, to_columns] = x.swapaxes(0, 1)[:, :, from_rows, from_columns]
        channel, image, row, column = padded.strides
        steps = (row, column, channel, image, _OUT * row, _OUT * column)
        return as_strided(padded, (_IN, _IN, *padded.shape[:2], rows, columns), steps, writeable=False)


def _overlap(pad: int, length: int, padded_length: int) -> tuple[slice, slice]:
    """Which places of a padded axis have a pixel, and which pixels these are; a negative pad leaves the first out."""
    first, last = max(0, pad), min(padded_length, pad + length)
    return slice(first, max(first, last)), slice(first - pad, max(first, last) - pad)
