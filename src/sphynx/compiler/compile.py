"""From a trained network, of torch or ONNX, to a program, as `sphynx compile` goes: choose cuts, fuse, quantise."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace
from functools import cache, partial
from math import ceil, log2

import numpy as np
import torch

from sphynx.compiler.calibration import calibrate
from sphynx.compiler.frontend.readable import Readable, Walk
from sphynx.compiler.fusion.approximate import Approximation, approximated, curves, outlined
from sphynx.compiler.fusion.choose import choose_cuts
from sphynx.compiler.fusion.fuse import Fused
from sphynx.compiler.measure import Measured, measure_parts
from sphynx.compiler.precision import WEIGHT_BITS, Precision
from sphynx.compiler.quantise import Quantised, largest_error, quantise
from sphynx.compiler.settings import AS_USUAL, CompileSettings
from sphynx.data.class_order import numbers_among
from sphynx.data.images import DataFace, ImageSet
from sphynx.data.samples import Given, Samples, calibration_set, pixels_for, samples_of
from sphynx.data.streamed import StreamedSet
from sphynx.errors import InputError, SphynxError
from sphynx.network.fit import require_fit
from sphynx.program.convolve import Array
from sphynx.program.inputs import PICTURE, Input
from sphynx.program.ir import Graph
from sphynx.program.judgement import Original, hash_of
from sphynx.program.outputs import joined
from sphynx.run.update import Update

CALIBRATION_IMAGES = 200
SKETCH_IMAGES = 50  # enough to tell which precision will do
LOGIT_ERROR = 0.01  # what automatic precision allows, relative to the logits' own spread
FIRST_LEVEL, COARSEST_LEVEL, FINEST_LEVEL = 12, 8, 20  # of automatic precision
FIRST_TRY = Precision(12, 10, 11)
FEWEST_ACTIVATION_BITS = 10
OURSELVES = "Sphynx, in float"
ASKED_AT_ONCE = 50  # inputs, of the float network: between them progress is told

Attempt = Callable[[Precision], Quantised]


def compile_read(readable: Readable, data: Given, settings: CompileSettings = AS_USUAL) -> tuple[Quantised, Original]:
    """Compile a network; return also what the float network answers to the calibration images."""
    if readable.design is not None and isinstance(data, DataFace):
        require_fit(readable.design, data, trained=True)
    chosen = _label(readable, samples_of(data, CALIBRATION_IMAGES), settings)
    image = readable.outline.image
    if readable.design is not None:
        pixels_for(chosen.images, image, readable.mean, readable.std)  # else it is refused: it was trained on pictures
    given = calibrate(
        chosen, image, readable.mean, readable.std, settings, name=readable.input_name, dims=readable.input_dims
    )
    made = compile_walk(
        readable.walk,
        given.mean,
        given.std,
        given.integers,
        settings,
        source=given.source,
        class_names=chosen.class_names,
        name=readable.name,
        made_from=readable.made_from,
    )
    labels, images_hash = chosen.labels, hash_of(given.integers)
    judge = readable.judge()  # not before the network was walked: that finds out what is too large to be computed
    if judge is None:
        answers = joined(made.program.answers(made.float_logits))
        return made, Original(answers, labels, images_hash, OURSELVES)
    found = []
    for first in range(0, len(given.integers), ASKED_AT_ONCE):
        settings.progress(Update(f"asking {judge.by}", first, len(given.integers)))
        found.append(judge.answer(given.integers[first : first + ASKED_AT_ONCE], given.mean, given.std))
    return made, Original(np.concatenate(found), labels, images_hash, judge.by, judge.resolution)


def _label(readable: Readable, samples: Samples, settings: CompileSettings) -> Samples:
    """The samples with the classes in the network's order, named as the settings say; without labels, and with a
    warning, where these cannot be the network's classes."""
    outputs = next((output.dims[0] for output in readable.outline.outputs if len(output.dims) == 1), 0)
    names = settings.class_names or samples.class_names
    if settings.class_names and len(names) != outputs:
        raise InputError(
            f"there are {len(names)} class names for {outputs} outputs", where="`class_names`", remedy="Name each."
        )
    if samples.labels is None:
        return replace(samples, class_names=tuple(names) or readable.class_names)
    known = len(names) or int(samples.labels.max()) + 1
    if not outputs:
        settings.warn(
            f"{samples.name}: the network's outputs are not scores of classes: labels are left out, and agreement "
            "with the float network is reported instead of accuracy"
        )
        return samples.without_labels()
    if known > outputs or (names and len(names) != outputs):
        settings.warn(
            f"{samples.name}: its {known} classes are not the network's {outputs} outputs: its labels are left "
            "out, and agreement with the float network is reported instead of accuracy"
        )
        return samples.without_labels()
    order = numbers_among(tuple(names), readable.class_names, where=samples.name)
    if order is None:
        return replace(samples, class_names=tuple(names))
    return replace(samples, labels=np.array(order)[samples.labels], class_names=readable.class_names)


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
    stride = 1 if precision else ceil(len(calibration) / SKETCH_IMAGES)
    measured, *sketched = measure_parts(fused, calibration, (1, stride) if stride > 2 else (1,), settings.progress)

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
        sketch = attempts(sketched[0]) if sketched else None
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
