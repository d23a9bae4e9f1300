"""How a program does on data: integer accuracy, agreement with the float network, how much of each range is used."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch

from sphynx.compiler.calibration import integers_of
from sphynx.data.batches import plain_batches
from sphynx.data.class_order import numbers_among
from sphynx.data.images import ImageSet, Statistics
from sphynx.data.samples import Samples
from sphynx.errors import InputError
from sphynx.network.build import AnyNetwork
from sphynx.program.classes import possible_scores
from sphynx.program.convolve import Array, l1_norm, magnitude
from sphynx.program.interpret import Weights, interpret
from sphynx.program.ir import INPUT, Combine, Gate, Gather, Linear, Pool, Program, Relu, Square, Step, Truncate

FLOAT_BATCH = 250


@dataclass(frozen=True)
class LayerRange:
    """Bits of a signed number: what the layer was given, what the data used, what no input can exceed.

    `range_bits` is 0 for a link of a chain and for a part of a sum, which may wrap around the ring.
    """

    name: str
    range_bits: int
    used_bits: int
    bound_bits: int


@dataclass(frozen=True)
class Comparison:
    """A comparison with the float network that the program was compiled from."""

    accuracy: float | None  # None where the images' classes are not known
    agreement: float  # the share of images for which both name the same class
    largest_difference: float  # of a logit, in the float network's units


@dataclass(frozen=True)
class Check:
    """A program on images: its accuracy, the ranges that it uses, and its float network beside it.

    >>> check: sphynx.Check = sphynx.Compiled.load("compiled/digits").check(images=20)
    >>> check.images, check.float_network is None
    (20, True)
    """

    images: int
    accuracy: float | None  # None where the images' classes are not known
    layers: tuple[LayerRange, ...]
    float_network: Comparison | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def check(
    program: Program,
    weights: Weights,
    samples: Samples,
    network: AnyNetwork | None = None,
    normalisation: tuple[Statistics, Statistics] | None = None,
) -> Check:
    """Raises, with the layer's name, where an image leaves a range. `network` is compared with where it is given."""
    scores = possible_scores(program)
    if scores is None:
        samples = samples.without_labels()
    outputs = 0 if scores is None else scores.dims[0]
    known = samples.labels is not None
    if not len(samples) or (known and samples.class_names and len(samples.class_names) != outputs):
        raise InputError(
            f"the data has {len(samples)} images of {len(samples.class_names)} classes, "
            f"the program has {outputs} classes",
            where="data",
            remedy="Give the data that the network was trained for, or its images alone.",
        )
    images = integers_of(samples, program)
    labels = _labels_in_order(samples, program)
    if network is not None and (network.design.image, network.design.classes) != (
        program.image,
        outputs,
    ):
        raise InputError(
            f"the network takes {network.design.image} images of {network.design.classes} classes, "
            f"the program {program.image} images of {outputs}",
            where="network",
            remedy="Compare the program with the run that it was compiled from.",
        )
    largest = dict.fromkeys(program.shapes, 0)

    def watch(step: Step, tensor: Array) -> None:
        largest[step.name] = max(largest[step.name], magnitude(tensor))

    integers = interpret(program, weights, images, watch)
    numbers = program.split(program.real_numbers(integers))
    logits = numbers[(scores or program.outputs[0]).name].reshape(len(images), -1)
    compared = None
    if network is not None and normalisation is not None:
        compared = _compare(logits, labels, _float_logits(network, images, *normalisation))
    bounds = worst_case(program, weights)
    layers = tuple(
        LayerRange(step.name, step.range_bits, _signed_bits(largest[step.name]), _signed_bits(bounds[step.name]))
        for step in program.affines
        if isinstance(step, Linear) or step.range_bits
    )
    return Check(len(images), _accuracy(logits, labels), layers, compared)


def worst_case(program: Program, weights: Weights) -> dict[str, int]:
    """The largest magnitude that any image could give each tensor, from the sums of absolute weights."""
    bounds = {INPUT: program.input.largest}
    for step in program.steps:
        if isinstance(step, Linear):
            bounds[step.name] = magnitude(weights[step.bias_name]) + sum(
                (bounds[term.source] * l1_norm(weights[step.weight_name(number)])) << term.shift
                for number, term in enumerate(step.terms)
            )
        elif isinstance(step, Pool):
            rows, columns = (
                max(factor * (last - first) for (first, last), factor in zip(windows, factors, strict=True))
                for windows, factors in (
                    (step.row_windows, step.row_factors),
                    (step.column_windows, step.column_factors),
                )
            )
            bounds[step.name] = bounds[step.source] * rows * columns
        elif isinstance(step, Combine):
            constant = max(map(abs, step.constants), default=0)
            parts = zip(step.summands, step.integer_factors, strict=True)
            bounds[step.name] = constant + sum(bounds[s.source] * abs(factor) for s, factor in parts)
        elif isinstance(step, Gather):
            bounds[step.name] = bounds[step.source]
        elif isinstance(step, Truncate):
            bounds[step.name] = (bounds[step.source] >> step.truncate) + 1
        elif isinstance(step, Relu):
            bounds[step.name] = bounds[step.source] >> step.truncate
        elif isinstance(step, Gate):
            bounds[step.name] = bounds[step.source] * bounds[step.gate]
        elif isinstance(step, Square):
            bounds[step.name] = ((bounds[step.source] >> step.truncate_before) + 1) ** 2 >> step.truncate_after
    return bounds


def _labels_in_order(samples: Samples, program: Program) -> Array | None:
    """The labels, numbered as the program numbers the classes."""
    if samples.labels is None:
        return None
    order = numbers_among(samples.class_names, program.class_names)
    return samples.labels if order is None else np.array(order)[samples.labels]


def _accuracy(logits: Array, labels: Array | None) -> float | None:
    return None if labels is None else float((logits.argmax(axis=1) == labels).mean())


def _float_logits(network: AnyNetwork, pixels: Array, mean: Statistics, std: Statistics) -> Array:
    network.eval()
    device = next(network.parameters()).device
    images = ImageSet(torch.from_numpy(pixels), torch.zeros(len(pixels), dtype=torch.int64), ())
    with torch.no_grad():
        batches = plain_batches(images, FLOAT_BATCH, device=device, mean=mean, std=std)
        return np.concatenate([network(x).double().cpu().numpy() for x, _ in batches])


def _compare(logits: Array, labels: Array | None, real: Array) -> Comparison:
    return Comparison(
        accuracy=_accuracy(real, labels),
        agreement=float((real.argmax(axis=1) == logits.argmax(axis=1)).mean()),
        largest_difference=float(np.abs(logits - real).max()),
    )


def _signed_bits(largest: int) -> int:
    return largest.bit_length() + 1
