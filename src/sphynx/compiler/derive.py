"""The integer weights of a program, made again from the trained network that it was compiled from.

The program says where the network is cut and at which scales it is rounded; `corrections` are what each bias takes up,
per linear map and channel, which is all that calibration decided beside the program (quantise.py). So models come
without their integer weights:

    sphynx_models/NAME/          the trained network (network/trained.py)
    sphynx_models/NAME/program/  program.json   corrections.safetensors

Sphynx cells and streams take no torch: they are walked by their designs, with numbers as files hold them. Other
networks are read as torch modules.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.frontend.cells import walk_cells
from sphynx.compiler.frontend.numbers import array_of
from sphynx.compiler.frontend.stream import walk_stream
from sphynx.compiler.fusion.affine import Floats, used_taps
from sphynx.compiler.fusion.fuse import Fused, Fuser
from sphynx.compiler.quantise import corrected, rounded
from sphynx.errors import InputError
from sphynx.network.stored import StoredNetwork, load_normalisation, load_stored
from sphynx.program.convolve import Array
from sphynx.program.folder import load_corrections
from sphynx.program.ir import Combine, Graph, Linear, Program, Relu, Step, Summand, Truncate
from sphynx.program.outputs import LOGITS
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.reduced import Activations, ReducedDesign
from sphynx.space.stream import StreamDesign

_INNER = "inner."  # before the names of what a reduced network was made of


def derive_weights(model: Path, folder: Path, program: Program) -> dict[str, Array]:
    """Make the weights of `program` again, from the trained network in `model` and the corrections in `folder`: those
    that `quantise` made of the same network when it made the program and the corrections."""
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
    weights: dict[str, Array] = {}
    for step in program.linears:
        weights.update(rounded(step, fused.weights, program.weight_bits))
        weights[step.bias_name] = corrected(weights[step.bias_name], corrections[step.name])
    return weights


def can_be_walked(design: AnyDesign) -> bool:
    """Return whether `trace_stored` takes its network; the others are read as torch modules."""
    return isinstance(design.base if isinstance(design, ReducedDesign) else design, Design | StreamDesign)


def trace_stored(
    stored: StoredNetwork, mean: tuple[float, ...], std: tuple[float, ...], *, cuts: Container[str] = ()
) -> Fused:
    """Trace the network as `torch_network.trace` does, to the same numbers bit for bit."""
    design, numbers = stored.design, StoredNumbers(stored.arrays)
    if isinstance(design, ReducedDesign):
        layers = {layer.layer: layer for layer in design.layers}
        design, numbers = design.base, StoredNumbers(stored.arrays, layers, _INNER)
    fuser = Fuser(design.image, mean, std, cuts=cuts)
    if isinstance(design, StreamDesign):
        return fuser.finish(walk_stream(fuser, design, numbers), LOGITS)
    assert isinstance(design, Design)
    return fuser.finish(walk_cells(fuser, design, numbers), LOGITS)


@dataclass(frozen=True, eq=False)
class StoredNumbers:
    """Numbers as they were read from a file."""

    arrays: Mapping[str, NDArray[Any]]
    reduced: Mapping[str, Activations] = field(default_factory=dict)
    prefix: str = ""  # of all names in the file

    def find(self, name: str) -> Floats | None:
        found = self.arrays.get(self.prefix + name)
        return None if found is None else found.astype(np.float64)

    def kernel(self, name: str, *, outline: bool) -> Floats:
        kernel = array_of(self, name)
        return np.broadcast_to(used_taps(kernel), kernel.shape) if outline else kernel


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
