"""Perturbation-based selection (Wang et al. 2021): keep what the supernet misses most, not what its weights favour.

Edge by edge, in random order: each operation is taken out of the mixture in turn and the supernet is scored on held-out
data; the operation whose absence costs most stays alone on that edge, and w is tuned for a while. Then, node by node,
each incoming edge is taken out in turn and the two that are missed most stay.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch

from sphynx.search.supernet.cellspace import KINDS, CellSpace, Kind
from sphynx.search.supernet.mixture import Mixture, Mixtures
from sphynx.space.cell import EDGES_PER_NODE, Cell, Edge
from sphynx.space.genotype import Genotype

Score = Callable[[Mixtures], float]  # higher is better
Tune = Callable[[Mixtures], None]


class _Selection:
    """The mixtures as chosen so far: a keep-mask per kind over (edges, operations + zero)."""

    def __init__(self, space: CellSpace, mixtures: Mixtures) -> None:
        self.mixtures = mixtures
        self.keep = {kind: torch.ones(len(space.edges), len(space.candidates)) for kind in KINDS}

    def mixed(self, kind: Kind | None = None, edge: int = 0, without: int | None = None) -> Mixtures:
        """Mix without one operation or, where `without` is None, without one whole edge of `kind`."""
        mixed: dict[Kind, Mixture] = {}
        for name, mixture in self.mixtures.items():
            assert mixture.weights is not None
            keep = self.keep[name].clone()
            if name == kind:
                keep[edge, slice(None) if without is None else without] = 0
            weights = mixture.weights.detach() * keep.to(mixture.weights)
            # What is left of an edge shares its weight, as a softmax without the missing logit would.
            weights = weights / weights.sum(dim=-1, keepdim=True).clamp_min(1e-12)
            # With partial channels an edge also carries what goes around its operations: scaled away with the edge.
            present = (keep.sum(dim=-1) > 0).to(weights)
            edges = None if mixture.edges is None else mixture.edges.detach() * present
            mixed[name] = replace(mixture, weights=weights, edges=edges)
        return mixed


def select_by_perturbation(
    space: CellSpace, mixtures: Mixtures, kinds: tuple[Kind, ...], score: Score, tune: Tune, generator: torch.Generator
) -> Genotype:
    """`kinds` are those that the supernet has cells of."""
    selection = _Selection(space, mixtures)
    chosen: dict[Kind, list[int]] = {kind: [0] * len(space.edges) for kind in KINDS}
    places = [(kind, edge) for kind in kinds for edge in range(len(space.edges))]
    for number in torch.randperm(len(places), generator=generator).tolist():
        kind, edge = places[number]
        scores = [score(selection.mixed(kind, edge, operation)) for operation in range(len(space.operations))]
        best = min(range(len(scores)), key=lambda operation: scores[operation])
        chosen[kind][edge] = best
        selection.keep[kind][edge] = 0
        selection.keep[kind][edge, best] = 1
        tune(selection.mixed())
    sources = {kind: _sources(space, selection, kind, score, tune, kind in kinds) for kind in KINDS}
    normal, reduce = (_cell(space, sources[kind], chosen[kind]) for kind in KINDS)
    return Genotype(normal, reduce, name="perturbation")


def _sources(
    space: CellSpace, selection: _Selection, kind: Kind, score: Score, tune: Tune, present: bool
) -> dict[int, list[int]]:
    """Per node the two predecessors that are missed most."""
    taken: dict[int, list[int]] = {}
    for target in space.intermediates:
        edges = list(space.incoming(target))
        if not present or len(edges) <= EDGES_PER_NODE:
            taken[target] = list(range(EDGES_PER_NODE))
            continue
        scores = [score(selection.mixed(kind, edge)) for edge in edges]
        taken[target] = sorted(sorted(range(target), key=lambda source: scores[source])[:EDGES_PER_NODE])
        for source, edge in enumerate(edges):
            if source not in taken[target]:
                selection.keep[kind][edge] = 0
        tune(selection.mixed())
    return taken


def _cell(space: CellSpace, sources: dict[int, list[int]], chosen: list[int]) -> Cell:
    nodes = []
    for target in space.intermediates:
        first, second = (
            Edge(space.operations[chosen[space.edge_number(source, target)]], source) for source in sources[target]
        )
        nodes.append((first, second))
    return tuple(nodes)
