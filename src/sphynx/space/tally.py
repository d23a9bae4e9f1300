"""Exact counts from shapes alone: ReLUs, max-pool comparisons, parameters and multiply-accumulates.

Each method takes the shape that enters a layer, adds what the layer costs for one image, and returns the shape that
leaves it. A multiply-accumulate of a linear or average-pooling layer counts one; batch norm folds away and counts none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Shape(NamedTuple):
    """The shape of an image or a feature map.

    >>> sphynx.Shape(3, 32, 32).size
    3072
    """

    channels: int
    height: int
    width: int

    @property
    def size(self) -> int:
        return self.channels * self.height * self.width

    def with_channels(self, channels: int) -> Shape:
        return Shape(channels, self.height, self.width)

    def __str__(self) -> str:
        return f"{self.channels}x{self.height}x{self.width}"


def windows(length: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """How many positions a sliding window takes along one axis."""
    return (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


@dataclass
class Tally:
    relus: int = 0
    comparisons: int = 0
    parameters: int = 0
    macs: int = 0

    def convolution(
        self,
        x: Shape,
        channels: int,
        kernel: int,
        *,
        stride: int = 1,
        padding: int | None = None,
        dilation: int = 1,
        groups: int = 1,
        bias: bool = False,
    ) -> Shape:
        """`padding=None` keeps the resolution at stride 1 and gives ceil(length / stride) otherwise."""
        pad = dilation * (kernel - 1) // 2 if padding is None else padding
        height = windows(x.height, kernel, stride, pad, dilation)
        width = windows(x.width, kernel, stride, pad, dilation)
        weights = channels * (x.channels // groups) * kernel * kernel
        self.parameters += weights + (channels if bias else 0)
        self.macs += weights * height * width
        return Shape(channels, height, width)

    def batch_norm(self, x: Shape, *, affine: bool = True) -> Shape:
        self.parameters += 2 * x.channels if affine else 0
        return x

    def relu(self, x: Shape) -> Shape:
        self.relus += x.size
        return x

    def max_pool(self, x: Shape, kernel: int, *, stride: int, padding: int = 0) -> Shape:
        """A k x k maximum takes k*k - 1 comparisons (windows at the border are counted whole)."""
        out = _pool(x, kernel, stride, padding)
        self.comparisons += out.size * (kernel * kernel - 1)
        return out

    def average_pool(self, x: Shape, kernel: int, *, stride: int, padding: int = 0) -> Shape:
        out = _pool(x, kernel, stride, padding)
        self.macs += out.size * kernel * kernel
        return out

    def global_average_pool(self, x: Shape) -> Shape:
        self.macs += x.size
        return Shape(x.channels, 1, 1)

    def linear(self, inputs: int, outputs: int) -> int:
        self.parameters += inputs * outputs + outputs
        self.macs += inputs * outputs
        return outputs

    def factorized_reduction(self, x: Shape, channels: int, *, affine: bool) -> Shape:
        """Two 1x1 stride-2 convolutions, one shifted by a pixel, concatenated, then batch norm."""
        first = self.convolution(x, channels // 2, 1, stride=2, padding=0)
        # The shifted half reads pixels 1, 3, 5, ... with a zero beyond the edge where the length is odd.
        second = self.convolution(x, channels - channels // 2, 1, stride=2, padding=0)
        return self.batch_norm(first.with_channels(first.channels + second.channels), affine=affine)

    def minus(self, earlier: Tally) -> Tally:
        return Tally(
            self.relus - earlier.relus,
            self.comparisons - earlier.comparisons,
            self.parameters - earlier.parameters,
            self.macs - earlier.macs,
        )


def _pool(x: Shape, kernel: int, stride: int, padding: int) -> Shape:
    return Shape(x.channels, *(windows(length, kernel, stride, padding) for length in x[1:]))


@dataclass(frozen=True)
class LayerCount:
    """One row of a network's account: a stem, a cell, a head."""

    name: str
    kind: str
    output: Shape
    relus: int
    comparisons: int
    parameters: int
    macs: int


class Account:
    """Collects the rows of one network: everything tallied since the last row belongs to the next one."""

    def __init__(self) -> None:
        self.total = Tally()
        self.rows: list[LayerCount] = []
        self._before = Tally()

    def close_row(self, name: str, kind: str, output: Shape) -> None:
        row = self.total.minus(self._before)
        self.rows.append(LayerCount(name, kind, output, row.relus, row.comparisons, row.parameters, row.macs))
        self._before = Tally(self.total.relus, self.total.comparisons, self.total.parameters, self.total.macs)
