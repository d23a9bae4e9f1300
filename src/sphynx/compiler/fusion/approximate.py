"""Smooth functions of a fused network as ReLUs and public sums, fitted to what the calibration images show of them.

    x  --minus each knee, public-->  n times the channels  --ReLU, one layer-->  --factors, summed, public-->  truncated

A curve's name becomes that of the truncated sum, so what reads it stays as it is. The constants of that sum take up the
mean error of each channel, layer by layer, so that errors of one sign do not add up through the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from sphynx.compiler.fusion.affine import Floats
from sphynx.compiler.fusion.fit import Fit, fit
from sphynx.compiler.fusion.fuse import Fused
from sphynx.compiler.measure import require_numbers
from sphynx.program.convolve import Array
from sphynx.program.curves import CURVES, FACTORS
from sphynx.program.interpret import BATCH, apply_step, evaluate
from sphynx.program.ir import INPUT, Combine, Curve, Graph, Relu, Step, Summand, Truncate
from sphynx.space.tally import Shape

_SAMPLE = 1 << 14  # values of each batch, beside the smallest and the largest
_SEED = 0


@dataclass(frozen=True)
class Approximation:
    """The approximation of one smooth layer: its function, how many ReLUs an element takes, and how far off it is."""

    layer: str
    function: str
    knees: int
    low: float  # of what the calibration images put into it
    high: float
    rms_error: float
    largest_error: float  # within that range

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def curves(graph: Graph) -> list[Curve]:
    return [step for step in graph.steps if isinstance(step, Curve)]


def outlined(fused: Fused, knees: int) -> Fused:
    """The steps that there will be, without their numbers."""
    counts = {step.name: knees for step in curves(fused.graph)}
    return replace(fused, graph=_expand(fused.graph, counts)) if counts else fused


def approximated(fused: Fused, pixels: Array, knees: int) -> tuple[Fused, tuple[Approximation, ...], Array]:
    """The network with its curves replaced, what was replaced, and the logits that it has with the curves."""
    samples, means, logits = _samples(fused, pixels)
    fits = {
        step.name: fit(CURVES[step.function], samples[step.source], knees, relative=step.function in FACTORS)
        for step in curves(fused.graph)
    }
    graph = _expand(fused.graph, {name: len(found.knees) for name, found in fits.items()})
    weights = dict(fused.weights)
    for name, found in fits.items():
        weights.update(_numbers(name, found, fused.graph.shapes[name].channels))
    report = tuple(
        Approximation(
            step.name, step.function, len(found.knees), found.low, found.high, found.rms_error, found.largest_error
        )
        for step, found in ((step, fits[step.name]) for step in curves(fused.graph))
    )
    _correct(graph, weights, means, pixels)
    return replace(fused, graph=graph, weights=weights), report, logits


def _samples(fused: Fused, pixels: Array) -> tuple[dict[str, Floats], dict[str, Floats], Array]:
    """Sample what each curve reads, some values of each batch and the extremes; average the channels it makes."""
    wanted = {step.source for step in curves(fused.graph)}
    found: dict[str, list[Floats]] = {name: [] for name in wanted}
    means: dict[str, Floats] = {}
    random = np.random.default_rng(_SEED)

    def watch(step: Step, tensor: Array) -> None:
        if step.name in wanted:
            flat = tensor.reshape(-1)
            drawn = random.integers(0, flat.size, min(_SAMPLE, flat.size))
            extremes = np.array([flat.min(), flat.max()])  # not numbers where any value is not one
            require_numbers(extremes, "activations")
            found[step.name].append(np.concatenate([flat[drawn], extremes]))
        if isinstance(step, Curve):
            part = tensor.mean(axis=(2, 3)).sum(axis=0) / len(pixels)
            means[step.name] = means[step.name] + part if step.name in means else part

    logits = [
        evaluate(fused.graph, fused.weights, pixels[start : start + BATCH].astype(np.float64), watch)
        for start in range(0, len(pixels), BATCH)
    ]
    return {name: np.concatenate(parts) for name, parts in found.items()}, means, np.concatenate(logits)


def _correct(graph: Graph, weights: dict[str, Floats], means: Mapping[str, Floats], pixels: Array) -> None:
    """Moves the constants of each sum so that the channels have these means, with all sums before it moved already."""
    last_use = {source: number for number, step in enumerate(graph.steps) for source in step.sources}
    tensors = {INPUT: pixels.astype(np.float64)}
    sums = {f"{name}.sum": mean for name, mean in means.items()}
    for number, step in enumerate(graph.steps):
        tensor = apply_step(step, tensors, weights)
        if step.name in sums:
            moved = sums[step.name] - tensor.mean(axis=(0, 2, 3))
            weights[f"{step.name}/constants"] = weights[f"{step.name}/constants"] + moved
            tensor = tensor + moved[:, None, None]
        tensors[step.name] = tensor
        for source in set(step.sources):
            if last_use[source] == number:
                del tensors[source]


def _expand(graph: Graph, knees: Mapping[str, int]) -> Graph:
    steps: list[Step] = []
    for step in graph.steps:
        steps += _layers(step, graph.shapes[step.name], knees[step.name]) if isinstance(step, Curve) else [step]
    return Graph(graph.image, tuple(steps), outputs=graph.outputs)


def _layers(step: Curve, shape: Shape, knees: int) -> Iterator[Step]:
    channels = shape.channels
    wide = Shape(knees * channels, shape.height, shape.width)
    copies = Summand(step.source, channels=tuple(range(channels)) * knees if knees > 1 else ())
    yield Combine(f"{step.name}.knees", (copies,), wide, constants=(0,) * wide.channels)
    yield Relu(f"{step.name}.relus", f"{step.name}.knees")
    summands = tuple(
        Summand(f"{step.name}.relus", channels=tuple(range(n * channels, (n + 1) * channels)) if knees > 1 else ())
        for n in range(knees)
    )
    yield Combine(f"{step.name}.sum", summands, shape, constants=(0,) * channels, factors=(0,) * knees)
    yield Truncate(step.name, f"{step.name}.sum", 0)


def _numbers(name: str, found: Fit, channels: int) -> dict[str, Floats]:
    """The constants and factors of the two sums of a curve."""
    return {
        f"{name}.knees/constants": -np.repeat(found.knees, channels),
        f"{name}.sum/constants": np.full(channels, found.offset),
        f"{name}.sum/factors": found.changes,
    }
