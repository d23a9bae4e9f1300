"""Convolutions of small maps on a CPU, as one matrix product for the whole batch, without taps that see padding only.

torch's own CPU kernels multiply image by image: at 2x2 pixels each product has four columns, and reading the weights is
all they do. Here the windows of all images are the rows of one matrix. And on a 2x2 map a 5x5 kernel has 16 taps that
never meet a pixel (of a dilated one only the middle tap does): they are left out. The result differs from torch's in
the order of additions only. `SmallMaps` is a mode: within it, convolutions whose gradients are wanted and that gain by
it go this way, all others as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

MAX_PIXELS = 64  # of an output map; beyond, and for few channels, torch's own kernels are as fast
MIN_CHANNELS = 16


@dataclass(frozen=True)
class Taps:
    """One direction of a convolution: which taps meet a pixel, and the padding that is left for those."""

    first: int
    count: int
    low: int
    high: int  # negative where trailing pixels are not read
    outputs: int

    @classmethod
    def of(cls, length: int, kernel: int, stride: int, padding: int, dilation: int) -> Taps:
        outputs = (length + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
        meeting = [
            tap
            for tap in range(kernel)
            if tap * dilation - padding < length and tap * dilation - padding + (outputs - 1) * stride >= 0
        ]
        first, count = meeting[0], len(meeting)
        low = padding - first * dilation
        return cls(first, count, low, (outputs - 1) * stride + (count - 1) * dilation + 1 - length - low, outputs)


class SmallMaps(TorchFunctionMode):
    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if func is not torch.conv2d:
            return func(*args, **(kwargs or {}))
        return _convolve(*args, **(kwargs or {}))


def _convolve(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Tensor:
    plain = (x, weight, bias, stride, padding, dilation, groups)
    wanted = torch.is_grad_enabled() and weight.requires_grad
    if not wanted or bias is not None or isinstance(padding, str) or torch.is_autocast_enabled(x.device.type):
        return torch.conv2d(*plain)
    settings = tuple(value[0] if isinstance(value, tuple) else value for value in (stride, padding, dilation))
    rows, columns = (Taps.of(x.shape[d], weight.shape[d], *settings) for d in (2, 3))
    left_out = rows.count < weight.shape[2] or columns.count < weight.shape[3]
    if rows.outputs * columns.outputs > MAX_PIXELS or not (left_out or weight.shape[1] >= MIN_CHANNELS):
        return torch.conv2d(*plain)
    result: Tensor = _MatrixConvolution.apply(x, weight, rows, columns, settings, groups)  # type: ignore[no-untyped-call]  # torch's
    return result


class _MatrixConvolution(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, rows: Taps, columns: Taps, settings: tuple[int, int, int], groups: int
    ) -> Tensor:
        stride, _, dilation = settings
        windows = _windows(x, rows, columns, stride, dilation, groups)
        used = _crop_taps(weight, rows, columns).unflatten(0, (groups, -1))
        matrix = used.permute(0, 1, 3, 4, 2).flatten(2)
        ctx.save_for_backward(x, weight, windows, matrix)
        ctx.taps, ctx.settings, ctx.groups = (rows, columns), settings, groups
        return _map_of(_product(windows, matrix.transpose(1, 2)), x.shape[0], rows, columns)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        x, weight, windows, matrix = ctx.saved_tensors
        gradient, wanted = gradients[0], ctx.needs_input_grad[:2]
        if torch.is_grad_enabled():  # a second derivative is wanted: torch knows that of its own convolution
            stride, padding, dilation = ([value] * 2 for value in ctx.settings)
            of_x, of_weight, _ = torch.ops.aten.convolution_backward(
                gradient, x, weight, None, stride, padding, dilation, False, [0, 0], ctx.groups, [*wanted, False]
            )
            return of_x, of_weight, None, None, None, None
        (rows, columns), groups = ctx.taps, ctx.groups
        of_outputs = gradient.permute(0, 2, 3, 1).reshape(-1, groups, weight.shape[0] // groups).transpose(0, 1)
        of_x = of_weight = None
        if wanted[1]:
            product = _product(of_outputs.transpose(1, 2), windows)
            product = product.view(weight.shape[0], rows.count, columns.count, weight.shape[1]).permute(0, 3, 1, 2)
            if product.shape == weight.shape:
                of_weight = product
            else:
                of_weight = torch.zeros_like(weight)
                _crop_taps(of_weight, rows, columns).copy_(product)
        if wanted[0] and ctx.settings[0] == 1:
            of_x = _of_pixels(gradient, weight, x, ctx)
        elif wanted[0]:
            of_x = _of_strided_pixels(_product(of_outputs, matrix), x, ctx)
        return of_x, of_weight, None, None, None, None


def _product(a: Tensor, b: Tensor) -> Tensor:
    """On one thread: those of a BLAS wait for each other by spinning, for longer than products as small as these take
    (two threads on a busy machine: 0.57 CPU seconds per training step of a network for digits, instead of 0.17)."""
    threads = torch.get_num_threads()
    if threads == 1:
        return torch.bmm(a, b)
    torch.set_num_threads(1)
    try:
        return torch.bmm(a, b)
    finally:
        torch.set_num_threads(threads)


def _crop_taps(weight: Tensor, rows: Taps, columns: Taps) -> Tensor:
    return weight[:, :, rows.first : rows.first + rows.count, columns.first : columns.first + columns.count]


def _windows(x: Tensor, rows: Taps, columns: Taps, stride: int, dilation: int, groups: int) -> Tensor:
    """(groups, images x outputs, taps x channels of a group)"""
    padded = x.permute(0, 2, 3, 1)
    if any((rows.low, rows.high, columns.low, columns.high)):
        padded = functional.pad(padded, (0, 0, columns.low, columns.high, rows.low, rows.high))
    padded = padded.contiguous()
    image, row, column, channel = padded.stride()
    per_group = x.shape[1] // groups
    return padded.as_strided(
        (groups, x.shape[0], rows.outputs, columns.outputs, rows.count, columns.count, per_group),
        (per_group * channel, image, stride * row, stride * column, dilation * row, dilation * column, channel),
    ).reshape(groups, x.shape[0] * rows.outputs * columns.outputs, -1)


def _map_of(product: Tensor, batch: int, rows: Taps, columns: Taps) -> Tensor:
    """From (groups, images x outputs, channels of a group) to images, channels last in memory."""
    return product.transpose(0, 1).reshape(batch, rows.outputs, columns.outputs, -1).permute(0, 3, 1, 2)


def _of_pixels(gradient: Tensor, weight: Tensor, x: Tensor, ctx: Any) -> Tensor:
    """At stride 1: a convolution of the outputs' gradient with the turned kernel."""
    (rows, columns), dilation, groups = ctx.taps, ctx.settings[2], ctx.groups
    back = [
        Taps(0, taps.count, dilation * (taps.count - 1) - taps.low, dilation * (taps.count - 1) - taps.high, length)
        for taps, length in zip((rows, columns), x.shape[2:], strict=True)
    ]
    turned = _crop_taps(weight, rows, columns).flip(2, 3).unflatten(0, (groups, -1))
    windows = _windows(gradient, back[0], back[1], 1, dilation, groups)
    return _map_of(_product(windows, turned.permute(0, 3, 4, 1, 2).flatten(1, 3)), x.shape[0], back[0], back[1])


def _of_strided_pixels(of_windows: Tensor, x: Tensor, ctx: Any) -> Tensor:
    """Adds what each window says of each pixel."""
    (rows, columns), (stride, _, dilation), groups = ctx.taps, ctx.settings, ctx.groups
    batch, channels, height, width = x.shape
    shape = (groups, batch, rows.outputs, columns.outputs, rows.count, columns.count, channels // groups)
    of_windows = of_windows.view(shape)
    sizes = (height + rows.low + rows.high, width + columns.low + columns.high)
    padded = of_windows.new_zeros(batch, *sizes, groups, channels // groups)
    for i in range(rows.count):
        for j in range(columns.count):
            top, left = i * dilation, j * dilation
            padded[
                :,
                top : top + (rows.outputs - 1) * stride + 1 : stride,
                left : left + (columns.outputs - 1) * stride + 1 : stride,
            ] += of_windows[:, :, :, :, i, j].permute(1, 2, 3, 0, 4)
    # Padding is cut off; pixels that no window read (negative padding) get zero.
    cut = (0, 0, -columns.low, -columns.high, -rows.low, -rows.high)
    return functional.pad(padded.flatten(3), cut).permute(0, 3, 1, 2)
