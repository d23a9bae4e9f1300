"""The shape of one convolution: public, and all that packing plans and kernels are made from."""

from __future__ import annotations

from dataclasses import dataclass

from sphynx.errors import InputError


@dataclass(frozen=True)
class ConvShape:
    """One convolution: output row y reads input rows stride * y - pad_top + dilation * ky, as in torch."""

    in_channels: int
    height: int
    width: int
    out_channels: int
    kernel_height: int
    kernel_width: int
    out_height: int
    out_width: int
    stride: int = 1
    dilation: int = 1
    pad_top: int = 0  # negative: the first rows are not read, as in a shifted factorized reduction
    pad_left: int = 0
    groups: int = 1  # of channels; weights between two groups are zero, and their products are left out under RLWE

    def __post_init__(self) -> None:
        positive = (
            "in_channels",
            "height",
            "width",
            "out_channels",
            "kernel_height",
            "kernel_width",
            "out_height",
            "out_width",
            "stride",
            "dilation",
            "groups",
        )
        faults = [name for name in positive if getattr(self, name) < 1]
        if faults:
            raise InputError(
                f"{', '.join(faults)} must be at least 1", where=str(self), remedy="Correct the layer's shape."
            )
        if self.in_channels % self.groups or self.out_channels % self.groups:
            raise InputError(
                "its groups do not divide its channels", where=str(self), remedy="Correct the layer's shape."
            )

    @property
    def multiplications(self) -> int:
        """Without those of padding, which the ring convolution skips."""
        rows = self._taps_on_image(self.out_height, self.kernel_height, self.height, self.pad_top)
        columns = self._taps_on_image(self.out_width, self.kernel_width, self.width, self.pad_left)
        return self.out_channels * self.in_channels * rows * columns

    def _taps_on_image(self, outputs: int, kernel: int, length: int, pad: int) -> int:
        first = (self.stride * output - pad for output in range(outputs))
        return sum(0 <= start + self.dilation * tap < length for start in first for tap in range(kernel))

    @classmethod
    def square(
        cls,
        in_channels: int,
        size: tuple[int, int],
        out_channels: int,
        kernel: int,
        *,
        stride: int = 1,
        dilation: int = 1,
        padding: int = 0,
    ) -> ConvShape:
        """The shape of what torch.nn.Conv2d of these arguments does to a (height, width) image."""
        span = dilation * (kernel - 1) + 1
        height, width = size
        out_height = (height + 2 * padding - span) // stride + 1
        out_width = (width + 2 * padding - span) // stride + 1
        return cls(
            in_channels,
            height,
            width,
            out_channels,
            kernel,
            kernel,
            out_height,
            out_width,
            stride,
            dilation,
            padding,
            padding,
        )

    @classmethod
    def dense(cls, inputs: int, outputs: int) -> ConvShape:
        return cls(inputs, 1, 1, outputs, 1, 1, 1, 1)

    def row_taps(self) -> list[tuple[int, int]]:
        """(shift, phase) of each kernel row: it reads row y + shift of that phase image."""
        return [divmod(self.dilation * k - self.pad_top, self.stride) for k in range(self.kernel_height)]

    def column_taps(self) -> list[tuple[int, int]]:
        return [divmod(self.dilation * k - self.pad_left, self.stride) for k in range(self.kernel_width)]
