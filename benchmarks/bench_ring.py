#!/usr/bin/env python3
"""Exact ring convolution beside torch's fp32 convolution of the same shape, on the same cores.

    python benchmarks/bench_ring.py [--threads 1] [--repeats 30] [--weight-bits 8]

Prints JSON with one entry per shape: torch_conv_s, and per ring width ring_conv_s and its ratio to torch.
Times are the best of `repeats` after one run that is not counted. Shapes are those of the 25.6K-ReLU network
and two of ResNet's size.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from collections.abc import Callable

import numpy as np
import torch

from sphynx.core.conv_shape import ConvShape
from sphynx.core.ring import RingConv, ring_dtype

SHAPES = [
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
]
RING_BITS = (32, 40, 64)


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return min(times)


def measure(shape: ConvShape, weight_bits: int, repeats: int, threads: int) -> dict[str, object]:
    rng = np.random.default_rng(0)
    kernel = (shape.out_channels, shape.in_channels, shape.kernel_height, shape.kernel_width)
    top = 2 ** (weight_bits - 1)
    weights = rng.integers(-top, top, kernel).astype(np.int32)
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
        torch_seconds = best_seconds(lambda: layer(image), repeats)
    macs = int(np.prod(kernel)) * shape.out_height * shape.out_width
    entry: dict[str, object] = {
        "shape": f"{shape.in_channels}x{shape.height}x{shape.width} -> {shape.out_channels}, "
        f"kernel {shape.kernel_height}, stride {shape.stride}, dilation {shape.dilation}",
        "macs": macs,
        "torch_conv_s": torch_seconds,
        "torch_gmac_per_s": macs / torch_seconds / 1e9,
        "ring_conv_s": {},
        "ring_gmac_per_s": {},
        "ratio_to_torch": {},
    }
    for bits in RING_BITS:
        conv = RingConv(shape, bits, weights)
        extents = (shape.in_channels, shape.height, shape.width)
        tensor = rng.integers(0, 2**63, extents, np.uint64).astype(ring_dtype(bits))
        seconds = best_seconds(lambda conv=conv, tensor=tensor: conv(tensor, threads), repeats)
        rate, ratio = macs / seconds / 1e9, seconds / torch_seconds
        for key, value in (("ring_conv_s", seconds), ("ring_gmac_per_s", rate), ("ratio_to_torch", ratio)):
            table = entry[key]
            assert isinstance(table, dict)
            table[str(bits)] = value
        entry["path"] = conv.native.path
    return entry


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--weight-bits", type=int, default=8)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    entries = [measure(shape, arguments.weight_bits, arguments.repeats, arguments.threads) for shape in SHAPES]
    report = {
        "machine": platform.machine(),
        "threads": arguments.threads,
        "repeats": arguments.repeats,
        "weight_bits": arguments.weight_bits,
        "torch": torch.__version__,
        "shapes": entries,
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
