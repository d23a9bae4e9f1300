"""From a trained network, of torch or ONNX, to a program, as `sphynx compile` goes: choose cuts, fuse, quantise."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from functools import cache, partial
from math import ceil, log2
from typing import Protocol

import torch

from sphynx.compiler.frontend.torch_network import trace
from sphynx.compiler.fusion.approximate import Approximation, approximated, curves, outlined
from sphynx.compiler.fusion.choose import choose_cuts
from sphynx.compiler.fusion.fuse import Fused
from sphynx.compiler.measure import Measured, measure
from sphynx.compiler.precision import WEIGHT_BITS, Precision
from sphynx.compiler.quantise import Quantised, largest_error, quantise
from sphynx.compiler.settings import AS_USUAL, CompileSettings
from sphynx.data.images import ImageSet
from sphynx.data.samples import calibration_set
from sphynx.data.streamed import StreamedSet
from sphynx.errors import InputError, SphynxError
from sphynx.network.build import AnyNetwork, as_designed
from sphynx.program.convolve import Array
from sphynx.program.inputs import PICTURE, Input
from sphynx.program.ir import Graph
from sphynx.run.update import Update

CALIBRATION_IMAGES = 200
SKETCH_IMAGES = 50  # enough to tell which precision will do
LOGIT_ERROR = 0.01  # what automatic precision allows, relative to the logits' own spread
FIRST_LEVEL, COARSEST_LEVEL, FINEST_LEVEL = 12, 8, 20  # of automatic precision
FIRST_TRY = Precision(12, 10, 11)
FEWEST_ACTIVATION_BITS = 10

Attempt = Callable[[Precision], Quantised]


class Walk(Protocol):
    """Makes a network's fused graph, or its outline, with these cuts."""

    def __call__(
        self,
        mean: tuple[float, ...],
        std: tuple[float, ...],
        *,
        cuts: Container[str] = ...,
        outline: bool = ...,
    ) -> Fused: ...


def walk_of(network: AnyNetwork) -> Walk:
    """The walk of a network of ours."""
    return partial(trace, as_designed(network))


@torch.no_grad()
def compile_walk(
    walk: Walk,
    mean: tuple[float, ...],
    std: tuple[float, ...],
    calibration: Array,
    settings: CompileSettings = AS_USUAL,
    *,
    source: Input = PICTURE,
    class_names: tuple[str, ...] = (),
    name: str = "",
    made_from: str = "",
) -> Quantised:
    """`calibration` are integers of the `source` like those that will be asked about. Without a precision it is found.

    Of the settings the precision, the knees of smooth functions and the deployment count.
    """
    precision, knees, deployment = settings.precision, settings.knees, settings.deployment

    def outline(cuts: Container[str]) -> Fused:
        return outlined(walk(mean, std, cuts=cuts, outline=True), knees)

    named_outputs(outline(()).graph, class_names)
    settings.progress(Update("choosing where to cut"))
    cuts = choose_cuts(outline, precision or FIRST_TRY, deployment)
    settings.progress(Update("fusing"))
    fused = walk(mean, std, cuts=cuts)
    fused = replace(fused, graph=named_outputs(fused.graph, class_names))
    approximations: tuple[Approximation, ...] = ()
    wanted: Array | None = None
    if curves(fused.graph):
        settings.progress(Update("fitting smooth functions"))
        fused, approximations, wanted = approximated(fused, calibration, knees)
    measured = measure(fused, calibration, settings.progress)

    def attempts(of: Measured, *, narrow_logits: bool = True) -> Attempt:
        return partial(
            quantise,
            of,
            source=source,
            name=name,
            made_from=made_from,
            narrow_logits=narrow_logits,
            progress=settings.progress,
        )

    if precision:
        made = attempts(measured)(precision)
    else:
        some = calibration[:: ceil(len(calibration) / SKETCH_IMAGES)]
        sketch = attempts(measure(fused, some)) if 2 * len(some) < len(calibration) else None
        made = coarsest_that_serves(attempts(measured), sketch=sketch)
        if made.logit_error > LOGIT_ERROR:
            made = _with_wider_logits(made, attempts(measured, narrow_logits=False))
    if wanted is None:
        return made
    error = largest_error(fused.graph, measured.logits, wanted)
    return replace(made, float_logits=wanted, approximations=approximations, approximation_error=error)


def named_outputs(graph: Graph, class_names: tuple[str, ...]) -> Graph:
    """The graph whose first output with that many numbers is scores of these classes; refused where its one output, a
    vector, has another length."""
    if not class_names:
        return graph
    for output in graph.outputs:
        if output.dims == (len(class_names),):
            named = replace(output, class_names=class_names)
            return replace(graph, outputs=tuple(named if each is output else each for each in graph.outputs))
    if len(graph.outputs) == 1 and len(graph.outputs[0].dims) == 1:
        raise InputError(
            f"it has {len(class_names)} classes, the network has {graph.output_size}",
            where="calibration data",
            remedy="Give the data that the network was trained on.",
        )
    return graph


def coarsest_that_serves(
    attempt: Attempt, allowed_error: float = LOGIT_ERROR, *, sketch: Attempt | None = None
) -> Quantised:
    """At the coarsest level whose logit error is allowed, else at the finest that fits a ring.

    `sketch` attempts the same on fewer images, in less time: it tells the level from which `attempt` goes on upwards,
    so that a coarser one might have served too.
    """
    start = _search(sketch, allowed_error)[0] if sketch else None
    return _search(attempt, allowed_error, start)[1]


def _with_wider_logits(made: Quantised, attempt: Attempt) -> Quantised:
    """With all bits of the logits' weights, where these alone miss: small networks have little else to round."""
    try:
        serves = attempt(made.precision).logit_error <= LOGIT_ERROR
    except SphynxError:  # beyond the widest ring
        return made
    return coarsest_that_serves(attempt) if serves else made


def _search(attempt: Attempt, allowed_error: float, start: int | None = None) -> tuple[int, Quantised]:
    """A level more halves the error of the weights: that says where to look. It does less where the activations keep
    their bits, so every level from there downwards is tried until one misses."""

    @cache
    def tried(level: int) -> Quantised | SphynxError:
        try:
            return attempt(automatic_precision(level))
        except InputError:  # at any precision
            raise
        except SphynxError as too_wide:
            return too_wide

    def too_coarse(level: int) -> bool:
        made = tried(level)
        return isinstance(made, Quantised) and made.logit_error > allowed_error

    level = FIRST_LEVEL if start is None else start
    if start is None:
        first = tried(level)
        if isinstance(first, Quantised):
            missing = ceil(log2(max(first.logit_error, 1e-9) / allowed_error))
            level = min(max(level + missing, COARSEST_LEVEL), FINEST_LEVEL)
        while level > COARSEST_LEVEL and not too_coarse(level):
            level -= 1
    while level < FINEST_LEVEL and too_coarse(level):
        level += 1
    made = tried(level)
    while isinstance(made, SphynxError) and level > COARSEST_LEVEL:
        level -= 1  # too coarse, and the finest that a ring holds
        made = tried(level)
    if isinstance(made, SphynxError):
        raise made
    return level, made


def automatic_precision(level: int) -> Precision:
    """The precision that is tried where the user gives none: weights of `level` bits, and when they have the most,
    finer activations: deep networks add up the rounding of hundreds of layers."""
    most = WEIGHT_BITS.stop - 1
    return Precision(min(level, most), max(FEWEST_ACTIVATION_BITS, level - 2), min(level - 1, most))


def calibration_images(images: ImageSet | StreamedSet, count: int = CALIBRATION_IMAGES) -> Array:
    picked: Array = calibration_set(images, count).images.cpu().numpy()
    return picked
