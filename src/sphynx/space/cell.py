"""A cell: a small graph (Sphynx paper, section 3) whose nodes each add up two edges from earlier nodes.

Nodes 0 and 1 are the outputs of the two cells before it, nodes 2 .. N-2 are listed here with their edges, and node N-1
concatenates them.
"""

from __future__ import annotations

from typing import NamedTuple

INPUT_NODES = 2
EDGES_PER_NODE = 2


class Edge(NamedTuple):
    """`operation` applied to node `source`."""

    operation: str
    source: int


# One entry per intermediate node: its two incoming edges.
Cell = tuple[tuple[Edge, Edge], ...]


def cell(*nodes: str) -> Cell:
    """Reads cells as they are written in prose: cell("skip 0, skip 1", "skip 2, dil5 0", ...)."""
    built = []
    for text in nodes:
        first, second = (Edge(op, int(source)) for op, source in (edge.split() for edge in text.split(",")))
        built.append((first, second))
    return tuple(built)
