"""Run the fused network on the calibration images in real numbers: how large every tensor gets, the outputs."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from sphynx.compiler.fusion.fuse import Fused
from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.interpret import evaluate, images_at_once
from sphynx.program.ir import INPUT, Graph, Step
from sphynx.run.update import Listener, Update, ignore


@dataclass
class Size:
    """The size of one tensor in real numbers, over all calibration images."""

    largest: float = 0.0
    squares: float = 0.0
    count: int = 0
    images: int = 0
    channel_sums: Array | float = 0.0  # of the mean over positions, over the images

    @property
    def rms(self) -> float:
        return sqrt(self.squares / self.count)

    def add(self, tensor: Array) -> None:
        flat = tensor.reshape(-1)
        self.largest = max(self.largest, float(flat.max()), -float(flat.min()))
        self.squares += float(np.vdot(flat, flat))
        self.count += tensor.size
        self.images += len(tensor)
        self.channel_sums = self.channel_sums + tensor.mean(axis=(2, 3)).sum(axis=0)

    @property
    def channel_means(self) -> Array:
        means: Array = np.asarray(self.channel_sums) / self.images
        return means


@dataclass(frozen=True, eq=False)
class Measured:
    """The fused network's tensors and outputs for the calibration images, in real numbers."""

    fused: Fused
    pixels: Array
    sizes: dict[str, Size]
    logits: Array  # [n, numbers], of all outputs one behind the other


class _Gauge:
    """Measures every tensor on each `stride`-th of the images, which come batch by batch."""

    def __init__(self, graph: Graph, stride: int) -> None:
        self.stride, self.sizes = stride, {name: Size() for name in graph.shapes}

    def add(self, first: int, name: str, tensor: Array) -> None:
        chosen = tensor[-first % self.stride :: self.stride]
        if len(chosen):
            self.sizes[name].add(chosen)


def measure(fused: Fused, pixels: Array, progress: Listener = ignore) -> Measured:
    """`pixels` are the calibration images, in a program's integers; `progress` hears of each that is done."""
    return measure_parts(fused, pixels, (1,), progress)[0]


def measure_parts(fused: Fused, pixels: Array, strides: tuple[int, ...], progress: Listener = ignore) -> list[Measured]:
    """Run the network once; for each stride return what `measure` would of `pixels[::stride]`."""
    _check_calibration(fused.graph, pixels)
    gauges = [_Gauge(fused.graph, stride) for stride in strides]
    logits = []
    size = images_at_once(fused.graph)
    for first in range(0, len(pixels), size):

        def watch(step: Step, tensor: Array, first: int = first) -> None:
            for gauge in gauges:
                gauge.add(first, step.name, tensor)

        batch = pixels[first : first + size].astype(np.float64)
        for gauge in gauges:
            gauge.add(first, INPUT, batch)
        logits.append(evaluate(fused.graph, fused.weights, batch, watch))
        require_numbers(logits[-1])
        progress(Update("measuring ranges", sum(map(len, logits)), len(pixels)))
    answers = np.concatenate(logits)
    return [Measured(fused, pixels[:: each.stride], each.sizes, answers[:: each.stride]) for each in gauges]


def require_numbers(found: Array, what: str = "logits") -> None:
    if not np.isfinite(found).all():
        raise InputError(f"its {what} are not finite numbers", where="network", remedy="Train it again.")


def _check_calibration(graph: Graph, pixels: Array) -> None:
    if pixels.dtype not in (np.uint8, np.uint16) or pixels.shape[1:] != tuple(graph.image) or not len(pixels):
        raise InputError(
            f"there are {len(pixels)} images of {'x'.join(map(str, pixels.shape[1:]))} ({pixels.dtype})",
            where="calibration data",
            remedy=f"Give images of {graph.image}, as the network was trained on.",
        )
