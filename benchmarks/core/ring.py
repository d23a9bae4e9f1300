"""Exact ring convolution beside torch's fp32 convolution of the same shape. One thread.

Shapes are those of the 25.6K-ReLU network and two of ResNet's size.
"""

from __future__ import annotations

import importlib
import os
from functools import partial
from typing import Any

import numpy as np

from sphynx.bench.core_rates import ring_seconds
from sphynx.bench.machine import best_seconds
from sphynx.core.conv_shape import ConvShape

SHAPES = (
    ConvShape.square(3, (32, 32), 15, 3, padding=1),
    ConvShape.square(5, (32, 32), 5, 3, padding=1),
    ConvShape.square(5, (32, 32), 5, 9, padding=4),
    ConvShape.square(5, (32, 32), 20, 5, stride=2, padding=2),
    ConvShape.square(20, (16, 16), 20, 5, padding=2),
    ConvShape.square(20, (16, 16), 20, 5, padding=4, dilation=2),
    ConvShape.square(20, (16, 16), 80, 5, stride=2, padding=2),
    ConvShape.square(80, (8, 8), 80, 1),
    ConvShape.square(80, (8, 8), 80, 3, padding=1),
    ConvShape.square(80, (8, 8), 80, 5, padding=2),
    ConvShape.square(64, (32, 32), 64, 3, padding=1),
    ConvShape.square(256, (8, 8), 256, 3, padding=1),
)
WIDTHS = ((32, 8), (40, 8), (64, 8), (32, 13))  # bits of the ring and of weights; programs have 12 to 14 of these


def shape_name(shape: ConvShape) -> str:
    kernel = f"{shape.kernel_height}x{shape.kernel_width}"
    name = f"{shape.in_channels}x{shape.height}x{shape.width} -> {shape.out_channels}, {kernel}"
    name += f", stride {shape.stride}" if shape.stride > 1 else ""
    return name + (f", dilation {shape.dilation}" if shape.dilation > 1 else "")


def load_torch() -> Any:
    """torch, or None. Its convolutions keep to torch.set_num_threads(1) only if OpenMP was told so before torch was
    loaded; otherwise a second thread helps some of them, unseen by this thread's clock."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = "1"
    try:
        return importlib.import_module("torch")
    except ImportError:
        return None
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def torch_seconds(shape: ConvShape, repeats: int) -> float | None:
    """None where torch is not installed."""
    torch = load_torch()
    if torch is None:
        return None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        image = torch.randn(1, shape.in_channels, shape.height, shape.width)
        layer = torch.nn.Conv2d(
            shape.in_channels,
            shape.out_channels,
            shape.kernel_height,
            shape.stride,
            shape.pad_top,
            shape.dilation,
            bias=False,
        )
        with torch.inference_mode():
            return best_seconds(partial(layer, image), repeats)
    finally:
        torch.set_num_threads(threads)


def ring_times(shape: ConvShape, repeats: int) -> list[dict[str, Any]]:
    """One entry for each of WIDTHS."""
    kernel = (shape.out_channels, shape.in_channels, shape.kernel_height, shape.kernel_width)
    macs = int(np.prod(kernel)) * shape.out_height * shape.out_width
    torch_s = torch_seconds(shape, 4 * repeats)
    entries: list[dict[str, Any]] = []
    for ring_bits, weight_bits in WIDTHS:
        half = 1 << (weight_bits - 1)
        weights = np.random.default_rng(0).integers(-half, half, kernel).astype(np.int32)
        ring_s, path = ring_seconds(shape, ring_bits, weights, 4 * repeats)
        entry: dict[str, Any] = {
            "shape": shape_name(shape),
            "ring_bits": ring_bits,
            "weight_bits": weight_bits,
            "path": path,
            "macs": macs,
            "ring_conv_s": ring_s,
            "torch_conv_s": torch_s,
            "ring_macs_per_s": macs / ring_s,
            "ratio_to_torch": ring_s / torch_s if torch_s else None,
        }
        entries.append(entry)
    return entries
