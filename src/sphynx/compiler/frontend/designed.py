"""Walks a network of ours by its design and its numbers alone: Sphynx cells and streams. No torch."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.frontend.cells import walk_cells
from sphynx.compiler.frontend.numbers import Numbers, array_of
from sphynx.compiler.frontend.stream import walk_stream
from sphynx.compiler.fusion.affine import Floats, Node, used_taps
from sphynx.compiler.fusion.fuse import Fused, Fuser
from sphynx.network.stored import StoredNetwork
from sphynx.program.outputs import LOGITS
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.reduced import Activations, ReducedDesign
from sphynx.space.stream import StreamDesign

_INNER = "inner."  # before the names of what a reduced network was made of


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
