"""Walks a network of ours by its design and its numbers alone: Sphynx cells and streams. No torch."""

from __future__ import annotations

from collections.abc import Container

from sphynx.compiler.frontend.cells import walk_cells
from sphynx.compiler.frontend.numbers import Numbers, StoredNumbers
from sphynx.compiler.frontend.stream import walk_stream
from sphynx.compiler.fusion.affine import Node
from sphynx.compiler.fusion.fuse import Fused, Fuser
from sphynx.network.stored import StoredNetwork
from sphynx.program.outputs import LOGITS
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.reduced import ReducedDesign
from sphynx.space.stream import StreamDesign

_INNER = "inner."  # before the names of what a reduced network was made of


def walk_design(fuser: Fuser, design: Design | StreamDesign, numbers: Numbers) -> Node:
    """Return the node of the logits."""
    if isinstance(design, StreamDesign):
        return walk_stream(fuser, design, numbers)
    return walk_cells(fuser, design, numbers)


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
    assert isinstance(design, Design | StreamDesign)
    fuser = Fuser(design.image, mean, std, cuts=cuts)
    return fuser.finish(walk_design(fuser, design, numbers), LOGITS)
