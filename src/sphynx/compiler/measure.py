"""Run the fused network on the calibration images in real numbers: how large every tensor gets, the outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from sphynx.compiler.fusion.fuse import Fused
from sphynx.compiler.side_by_side import side_by_side
from sphynx.compiler.winograd import TiledKernel, pays
from sphynx.errors import InputError
from sphynx.program.convolve import Array, Kernel
from sphynx.program.interpret import Weights, apply_step, evaluate, images_at_once, last_uses
from sphynx.program.ir import INPUT, Graph, Linear, Step
from sphynx.run.update import Listener, Update, ignore

_MADE_WITH = 9  # tensors as large as the largest: a kernel that unfolds a map, or takes tiles of it, holds as many


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

    def add(self, sizes: _BatchSizes, chosen: slice) -> None:
        """Take in the chosen images of a batch."""
        self.largest = max(self.largest, float(sizes.largest[chosen].max()))
        self.squares += float(sizes.squares[chosen].sum())
        self.images += len(sizes.squares[chosen])
        self.count += sizes.count * len(sizes.squares[chosen])
        self.channel_sums = self.channel_sums + sizes.channel_means[chosen].sum(axis=0)

    @property
    def channel_means(self) -> Array:
        means: Array = np.asarray(self.channel_sums) / self.images
        return means


class _BatchSizes:
    """The size of a tensor for each image of a batch."""

    def __init__(self, tensor: Array) -> None:
        flat = tensor.reshape(len(tensor), -1)
        self.count = flat.shape[1]
        self.largest: Array = np.maximum(flat.max(axis=1), -flat.min(axis=1))
        self.squares: Array = np.array([np.vdot(each, each) for each in flat])
        self.channel_means: Array = tensor.mean(axis=(2, 3))


@dataclass(frozen=True, eq=False)
class Measured:
    """The fused network's tensors and outputs for the calibration images, in real numbers."""

    fused: Fused
    pixels: Array
    sizes: dict[str, Size]
    logits: Array  # [n, numbers], of all outputs one behind the other


def measure(fused: Fused, pixels: Array, progress: Listener = ignore) -> Measured:
    """`pixels` are the calibration images, in a program's integers; `progress` hears of each that is done."""
    return measure_parts(fused, pixels, (1,), progress)[0]


def measure_parts(fused: Fused, pixels: Array, strides: tuple[int, ...], progress: Listener = ignore) -> list[Measured]:
    """Run the network once; for each stride return what `measure` would of `pixels[::stride]`."""
    _check_calibration(fused.graph, pixels)
    run = _BatchRun(fused, pixels, images_at_once(fused.graph))
    sizes: list[dict[str, Size]] = [{name: Size() for name in fused.graph.shapes} for _ in strides]
    logits: list[Array] = []
    with side_by_side(call_bytes(fused.graph)) as mapped:
        for first, (made, answers) in zip(run.starts, mapped(run, run.starts), strict=True):
            for stride, found in zip(strides, sizes, strict=True):
                chosen = slice(-first % stride, None, stride)
                for name, size in found.items():
                    if len(answers[chosen]):
                        size.add(made[name], chosen)
            require_numbers(answers)
            logits.append(answers)
            progress(Update("measuring ranges", sum(map(len, logits)), len(pixels)))
    every = np.concatenate(logits)
    return [
        Measured(fused, pixels[::stride], found, every[::stride]) for stride, found in zip(strides, sizes, strict=True)
    ]


def call_bytes(graph: Graph) -> int:
    """The most memory that a batch takes, in doubles: the tensors that are kept at once, and what one is made with."""
    sizes, last_use = {name: shape.size for name, shape in graph.shapes.items()}, last_uses(graph)
    kept = most = sizes[INPUT]
    for number, step in enumerate(graph.steps):
        kept += sizes[step.name]
        most = max(most, kept)
        kept -= sum(sizes[source] for source in set(step.sources) if last_use[source] == number)
    return 8 * images_at_once(graph) * (most + _MADE_WITH * max(sizes.values()))


class _BatchRun:
    """Runs the network on a batch of images, which begins at one of `starts`: the size of each tensor, the outputs."""

    def __init__(self, fused: Fused, pixels: Array, size: int) -> None:
        self.graph, self.weights, self.pixels, self.size = fused.graph, fused.weights, pixels, size
        self.starts = range(0, len(pixels), size)
        self.kernels = {step.name: _kernels(step, self.weights) for step in self.graph.linears}

    def __call__(self, first: int) -> tuple[dict[str, _BatchSizes], Array]:
        batch = self.pixels[first : first + self.size].astype(np.float64)
        sizes = {INPUT: _BatchSizes(batch)}

        def watch(step: Step, tensor: Array) -> None:
            sizes[step.name] = _BatchSizes(tensor)

        return sizes, evaluate(self.graph, self.weights, batch, watch, self.apply)

    def apply(self, step: Step, tensors: Mapping[str, Array], weights: Weights) -> Array:
        """Make a step's tensor; kernels are laid out once for all batches."""
        kernels = self.kernels.get(step.name)
        if not isinstance(step, Linear) or not kernels:
            return apply_step(step, tensors, weights)
        total: Array = weights[step.bias_name]
        for kernel, term in zip(kernels, step.terms, strict=True):
            part = kernel(tensors[term.source], (step.shape.height, step.shape.width))
            part += total
            total = part
        return total


def _kernels(step: Linear, weights: Weights) -> list[Kernel | TiledKernel]:
    """One for each term; none where channels are in groups."""
    if any(term.groups > 1 for term in step.terms):
        return []
    size = step.shape.height, step.shape.width
    named = [(weights[step.weight_name(number)], term) for number, term in enumerate(step.terms)]
    return [(TiledKernel if pays(kernel, term, size) else Kernel)(kernel, term) for kernel, term in named]


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
