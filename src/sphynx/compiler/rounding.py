"""A fused network's real numbers as the integer weights of its program; those of a trained network in a folder.

The program says at which scales; `corrections` are what each bias takes up, per linear map and channel, which is all
that calibration decided beside the program (quantise.py). Models come without their integer weights:

    sphynx_models/NAME/          the trained network (network/trained.py)
    sphynx_models/NAME/program/  program.json   corrections.safetensors
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import frexp
from pathlib import Path

import numpy as np

from sphynx.compiler.frontend.designed import can_be_walked, trace_stored
from sphynx.compiler.fusion.affine import Floats
from sphynx.compiler.fusion.fuse import Fused
from sphynx.errors import InputError
from sphynx.network.stored import load_normalisation, load_stored
from sphynx.program.convolve import Array
from sphynx.program.folder import load_corrections
from sphynx.program.ir import Combine, Graph, Linear, Program, Relu, Step, Summand, Truncate

FACTOR_BITS = 16  # in a hard swish two sums nearly cancel: at 12 bits its sixth would be off by a thousandth


def derive_weights(model: Path, folder: Path, program: Program) -> dict[str, Array]:
    """Make the weights of `program` again, from the trained network in `model` and the corrections in `folder`.

    No calibration data and nothing to choose: the program says where the network is cut and at which scales it is
    rounded. Sphynx cells and streams take no torch; other networks are read as torch modules.
    """
    corrections = load_corrections(folder, program)
    stored, normalisation = load_stored(model), load_normalisation(model)
    cuts = {step.name for step in program.steps}  # a cut joint is a step of its name; no other step has a joint's name
    if can_be_walked(stored.design):
        fused = trace_stored(stored, *normalisation, cuts=cuts)
    else:
        from sphynx.compiler.frontend.torch_network import trace  # here: Sphynx cells and streams do without torch
        from sphynx.network.trained import load_model

        fused = trace(load_model(model), *normalisation, cuts=cuts)
    if _structure(fused.graph) != _structure(program):
        raise InputError(
            "it was not compiled from the model beside it",
            where=str(folder),
            remedy=f"Compile the model again: sphynx compile {model} -o {folder} --derivable.",
        )
    return _integer_weights(fused, program, corrections)


def _integer_weights(fused: Fused, program: Program, corrections: Mapping[str, Array]) -> dict[str, Array]:
    """Make the weights that `quantise` made of the same fused network, when it made the program and the corrections."""
    weights: dict[str, Array] = {}
    for step in program.linears:
        weights.update(rounded(step, fused.weights, program.weight_bits))
        weights[step.bias_name] = corrected(weights[step.bias_name], corrections[step.name])
    return weights


def _structure(graph: Graph) -> tuple[Step, ...]:
    """The steps without what quantisation adds to them."""
    return tuple(_unscale(graph, step) for step in graph.steps)


def _unscale(graph: Graph, step: Step) -> Step:
    if isinstance(step, Linear):
        terms = tuple(replace(term, shift=0, weight_scale=0) for term in step.terms)
        return replace(step, terms=terms, scale=0, range_bits=0)
    if isinstance(step, Combine):
        summands = tuple(replace(summand, shift=0) for summand in step.summands)
        return replace(step, summands=summands, scale=0, range_bits=0, constants=(), factors=())
    if isinstance(step, Truncate):  # by no bit it is a copy
        return Combine(step.name, (Summand(step.source),), graph.shapes[step.name])
    return replace(step, truncate=0) if isinstance(step, Relu) else step


def rounded(step: Linear, real: Mapping[str, Floats], weight_bits: int) -> dict[str, Array]:
    """The weights and the bias map of one linear map at its scales, before the bias is corrected."""
    kind = np.int8 if weight_bits <= 8 else np.int16
    weights: dict[str, Array] = {}
    for number, term in enumerate(step.terms):
        name = step.weight_name(number)
        weights[name] = np.rint(real[name] * 2.0**term.weight_scale).astype(kind)
    weights[step.bias_name] = np.rint(real[step.bias_name] * 2.0**step.scale).astype(np.int64)
    return weights


def rounded_factors(real: Floats) -> tuple[tuple[int, ...], int]:
    """Round the factors of a public sum: integers of FACTOR_BITS, or fewer where those are exact, and their scale."""
    scale = FACTOR_BITS - frexp(float(np.abs(real).max()))[1]
    factors = [int(factor) for factor in np.rint(np.ldexp(real, scale)).tolist()]
    while any(factors) and not any(factor & 1 for factor in factors):
        factors, scale = [factor // 2 for factor in factors], scale - 1
    return tuple(factors), scale


def corrected(maps: Array, correction: Array) -> Array:
    """A bias map, or maps, with so much added to each channel."""
    moved: Array = maps + correction[:, None, None]
    return moved
