"""A model's integer weights from the model itself, its program and its corrections: those that `compile` made of it.

    sphynx_models/NAME/          the trained network (network/model.py)
    sphynx_models/NAME/program/  program.json   corrections.safetensors

No calibration data and nothing to choose: the program says where the network is cut and at which scales it is rounded.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import torch

from sphynx.compiler.frontend.torch_network import trace
from sphynx.compiler.rounding import integer_weights
from sphynx.errors import InputError
from sphynx.network.model import load_model, load_normalisation
from sphynx.program.convolve import Array
from sphynx.program.ir import Combine, Graph, Linear, Program, Relu, Step, Summand, Truncate
from sphynx.program.weights import load_corrections


def derive_weights(model: Path, folder: Path, program: Program) -> dict[str, Array]:
    """`model` is the folder of the trained network, `folder` that of the program and its corrections."""
    corrections = load_corrections(folder, program)
    network = load_model(model)  # at its design's own widths
    with torch.no_grad():
        # A cut joint is a step of its name; no other step has a joint's name.
        fused = trace(network, *load_normalisation(model), cuts={step.name for step in program.steps})
    if _structure(fused.graph) != _structure(program):
        raise InputError(
            "it was not compiled from the model beside it",
            where=str(folder),
            remedy=f"Compile the model again: sphynx compile {model} -o {folder} --derivable.",
        )
    return integer_weights(fused, program, corrections)


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
