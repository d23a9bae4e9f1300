"""The mixture that a strategy hands to the supernet for a forward pass: how much of each operation an edge lets
through.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from sphynx.search.supernet.cellspace import KINDS, CellSpace, Kind, Paths, cell_of
from sphynx.space.genotype import Genotype


@dataclass(frozen=True)
class Mixture:
    """One kind of cell: either all operations by their weights, or those that were drawn.

    weights: (edges, operations + zero), on the supernet's device.
    paths: the operations that are evaluated, unscaled; drawn on the host.
    edges: (edges,), scales whole edges (PC-DARTS's edge normalisation, GDAS's gates).
    """

    weights: Tensor | None = None
    paths: Paths | None = None
    edges: Tensor | None = None


Mixtures = Mapping[Kind, Mixture]


def single_path(space: CellSpace, genotype: Genotype) -> Mixtures:
    """The supernet as a finished genotype would use it, with the shared weights."""
    return {kind: Mixture(paths=space.paths_of(cell_of(genotype, kind))) for kind in KINDS}
