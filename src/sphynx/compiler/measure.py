"""Run the fused network on the calibration images in real numbers: how large every tensor gets, the outputs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

import numpy as np

from sphynx.compiler.fusion.fuse import Fused
from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.interpret import BATCH, evaluate
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
        self.largest = max(self.largest, float(np.abs(tensor).max()))
        self.squares += float(np.square(tensor).sum())
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


def measure(fused: Fused, pixels: Array, progress: Listener = ignore) -> Measured:
    """`pixels` are the calibration images, in a program's integers; `progress` hears of each that is done."""
    _check_calibration(fused.graph, pixels)
    sizes = {name: Size() for name in fused.graph.shapes}

    def watch(step: Step, tensor: Array) -> None:
        sizes[step.name].add(tensor)

    logits = []
    for batch in _batches(pixels):
        sizes[INPUT].add(batch.astype(np.float64))
        logits.append(evaluate(fused.graph, fused.weights, batch.astype(np.float64), watch))
        require_numbers(logits[-1])
        progress(Update("measuring ranges", sum(map(len, logits)), len(pixels)))
    return Measured(fused, pixels, sizes, np.concatenate(logits))


def require_numbers(found: Array, what: str = "logits") -> None:
    if not np.isfinite(found).all():
        raise InputError(f"its {what} are not finite numbers", where="network", remedy="Train it again.")


def _batches(pixels: Array) -> Iterator[Array]:
    return (pixels[start : start + BATCH] for start in range(0, len(pixels), BATCH))


def _check_calibration(graph: Graph, pixels: Array) -> None:
    if pixels.dtype not in (np.uint8, np.uint16) or pixels.shape[1:] != tuple(graph.image) or not len(pixels):
        raise InputError(
            f"there are {len(pixels)} images of {'x'.join(map(str, pixels.shape[1:]))} ({pixels.dtype})",
            where="calibration data",
            remedy=f"Give images of {graph.image}, as the network was trained on.",
        )
