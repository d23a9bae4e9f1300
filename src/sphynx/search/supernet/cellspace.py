"""The cells that a search chooses between: edges, candidate operations, and how a finished cell is read off.

A cell of the supernet has an edge from every earlier node to every intermediate node; each edge carries all candidate
operations (the space's, then `zero`). Edges are numbered by target, then source: (0,2) (1,2) (0,3) (1,3) (2,3) ...
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from sphynx.space.cell import EDGES_PER_NODE, INPUT_NODES, Cell, Edge
from sphynx.space.genotype import SPHYNX_OPERATIONS, Genotype

Kind = Literal["normal", "reduce"]
KINDS: tuple[Kind, ...] = ("normal", "reduce")
ZERO = "zero"

# Per edge: the operations that are evaluated, by their number. Empty where the edge carries nothing.
Paths = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class CellSpace:
    nodes: int = 7  # the paper's N: two inputs, N - 3 intermediates, the output
    operations: tuple[str, ...] = SPHYNX_OPERATIONS

    @property
    def candidates(self) -> tuple[str, ...]:
        return (*self.operations, ZERO)

    @cached_property
    def intermediates(self) -> range:
        return range(INPUT_NODES, self.nodes - 1)

    @cached_property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """(source, target) of each edge."""
        return tuple((source, target) for target in self.intermediates for source in range(target))

    def edge_number(self, source: int, target: int) -> int:
        return self.edges.index((source, target))

    def incoming(self, target: int) -> range:
        """The numbers of the edges into a node, by ascending source."""
        first = self.edge_number(0, target)
        return range(first, first + target)

    def derive(self, strengths: Sequence[Sequence[float]]) -> Cell:
        """Two strongest predecessors per node; an edge is as strong as its strongest operation other than zero."""
        nodes = []
        for target in self.intermediates:
            best = [self._strongest(strengths[edge]) for edge in self.incoming(target)]
            sources = sorted(range(target), key=lambda source: (-best[source][0], source))[:EDGES_PER_NODE]
            first, second = (Edge(self.operations[best[source][1]], source) for source in sorted(sources))
            nodes.append((first, second))
        return tuple(nodes)

    def _strongest(self, strengths: Sequence[float]) -> tuple[float, int]:
        number = max(range(len(self.operations)), key=lambda operation: strengths[operation])
        return strengths[number], number

    def random_cell(self, generator: random.Random) -> Cell:
        """Two different predecessors per node and an operation for each, all equally likely."""
        nodes = []
        for target in self.intermediates:
            sources = sorted(generator.sample(range(target), EDGES_PER_NODE))
            first, second = (Edge(generator.choice(self.operations), source) for source in sources)
            nodes.append((first, second))
        return tuple(nodes)

    def random_genotype(self, generator: random.Random, name: str = "random") -> Genotype:
        return Genotype(self.random_cell(generator), self.random_cell(generator), name=name)

    def paths_of(self, cell: Cell) -> Paths:
        """The operations that a finished cell evaluates on each edge of the supernet."""
        taken: list[tuple[int, ...]] = [()] * len(self.edges)
        for target, pair in zip(self.intermediates, cell, strict=True):
            for operation, source in pair:
                taken[self.edge_number(source, target)] += (self.operations.index(operation),)
        return tuple(taken)


def cell_of(genotype: Genotype, kind: Kind) -> Cell:
    return genotype.normal if kind == "normal" else genotype.reduce


def count_operation(cell: Cell, operation: str) -> int:
    return sum(edge.operation == operation for pair in cell for edge in pair)


def agreement(first: Genotype, second: Genotype) -> float:
    """The share of edges (operation and source, per node) that two genotypes have in common."""
    common = total = 0
    for kind in KINDS:
        for one, other in zip(cell_of(first, kind), cell_of(second, kind), strict=True):
            common += len(set(one) & set(other))
            total += EDGES_PER_NODE
    return common / total
