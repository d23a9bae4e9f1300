"""A genotype: the two cells (normal, reduce) that a whole network is stacked from.

N = 7 has four intermediate nodes in each cell (cell.py), N = 5 has two.

`space` names the vocabulary: "sphynx" is all linear, "micro" is the original DARTS space with its ReLUs and max pools.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sphynx.errors import InputError, join_faults
from sphynx.space.cell import EDGES_PER_NODE, INPUT_NODES, Cell, Edge
from sphynx.space.json_file import read_json
from sphynx.space.notebook import cells_html

Space = Literal["sphynx", "micro"]

FORMAT = "sphynx-genotype/1"

# "zero" exists during a search only: an edge that carries nothing is not part of a finished cell.
SPHYNX_OPERATIONS = ("conv3", "conv5", "dil3", "dil5", "avg_pool", "skip")
MICRO_OPERATIONS = ("sep3", "sep5", "sep_dil3", "sep_dil5", "max_pool", "avg_pool", "skip")
OPERATIONS: dict[Space, tuple[str, ...]] = {"sphynx": SPHYNX_OPERATIONS, "micro": MICRO_OPERATIONS}


@dataclass(frozen=True)
class Genotype:
    """A normal and a reduce cell: for each node its two edges. `sphynx.find_cells` has the published ones.

    >>> cells = sphynx.find_cells("sphynx")
    >>> cells.nodes, len(cells.normal)
    (7, 4)
    >>> sphynx.Genotype.from_json(cells.to_json()) == cells
    True
    """

    normal: Cell
    reduce: Cell
    space: Space = "sphynx"
    name: str = ""

    def __post_init__(self) -> None:
        faults = [
            *cell_faults("normal", self.normal, self.space),
            *cell_faults("reduce", self.reduce, self.space),
        ]
        if len(self.normal) != len(self.reduce):
            faults.append(
                f"the normal cell has {len(self.normal)} intermediate nodes, the reduce cell {len(self.reduce)}"
            )
        if faults:
            raise InputError(
                join_faults(faults),
                where=f"genotype {self.name}" if self.name else "genotype",
                remedy=f"Operations of the {self.space} space are {', '.join(OPERATIONS[self.space])}; each "
                "intermediate node (numbered from 2) takes two edges, each from an earlier node.",
            )

    @property
    def nodes(self) -> int:
        """The paper's N: inputs, intermediates and the output."""
        return INPUT_NODES + len(self.normal) + 1

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "space": self.space,
            "name": self.name,
            "normal": _cell_to_json(self.normal),
            "reduce": _cell_to_json(self.reduce),
        }

    @classmethod
    def from_json(cls, data: Any, where: str = "genotype") -> Genotype:
        """Read what `to_json` writes; every structural fault is named at once."""
        return _genotype_from_json(data, where)

    def save(self, path: str | Path) -> None:
        Path(path).write_text(json.dumps(self.to_json(), indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Genotype:
        return cls.from_json(read_json(Path(path)), where=str(path))

    def _repr_html_(self) -> str:
        return cells_html(self.name, self.normal, self.reduce)


def cell_faults(which: str, nodes: Cell, space: Space) -> list[str]:
    """Everything that is wrong with a cell, each fault naming its node and edge."""
    if not nodes:
        return [f"{which} cell: it has no intermediate node"]
    faults = []
    for node, edges in enumerate(nodes, start=INPUT_NODES):
        at = f"{which} cell, node {node}"
        if len(edges) != EDGES_PER_NODE:
            faults.append(f"{at}: it has {len(edges)} incoming edges instead of {EDGES_PER_NODE}")
        for number, edge in enumerate(edges):
            if edge.operation not in OPERATIONS[space]:
                faults.append(f"{at}, edge {number}: unknown operation {edge.operation!r}")
            if edge.source < 0:
                faults.append(f"{at}, edge {number}: there is no node {edge.source}")
            elif edge.source >= node:
                faults.append(
                    f"{at}, edge {number}: it comes from node {edge.source}, so the cell would have a cycle"
                    if edge.source < INPUT_NODES + len(nodes)
                    else f"{at}, edge {number}: there is no node {edge.source}"
                )
    return faults


def _genotype_from_json(data: Any, where: str) -> Genotype:
    if not isinstance(data, Mapping):
        raise InputError("it is not a JSON object", where=where, remedy=_REMEDY)
    faults: list[str] = []
    if data.get("format") != FORMAT:
        faults.append(f"its format is {data.get('format')!r}; this version reads {FORMAT!r}")
    space = data.get("space", "sphynx")
    if not isinstance(space, str) or space not in OPERATIONS:
        faults.append(f"unknown space {space!r}; the spaces are {', '.join(OPERATIONS)}")
        space = "sphynx"
    normal, reduce = (_cell_from_json(which, data.get(which), faults) for which in ("normal", "reduce"))
    faults += cell_faults("normal", normal, space) if normal else []
    faults += cell_faults("reduce", reduce, space) if reduce else []
    if faults:
        raise InputError(join_faults(faults), where=where, remedy=_REMEDY)
    return Genotype(normal, reduce, space, str(data.get("name", "")))


_REMEDY = (
    'A genotype file looks like {"format": "sphynx-genotype/1", "space": "sphynx", '
    '"normal": {"2": [["skip", 0], ["conv3", 1]], ...}, "reduce": {...}}; '
    "`sphynx show sphynx --json` prints a whole one."
)


def _cell_to_json(nodes: Cell) -> dict[str, list[list[str | int]]]:
    return {
        str(node): [[edge.operation, edge.source] for edge in edges]
        for node, edges in enumerate(nodes, start=INPUT_NODES)
    }


def _cell_from_json(which: str, data: Any, faults: list[str]) -> Cell:
    """The cell as far as it can be read; what cannot is added to `faults`."""
    if not isinstance(data, Mapping):
        faults.append(f"{which} cell: it is missing")
        return ()
    nodes: list[Any] = []
    for expected, (key, edges) in enumerate(
        sorted(data.items(), key=lambda item: (len(item[0]), item[0])), start=INPUT_NODES
    ):
        at = f"{which} cell, node {key}"
        if key != str(expected):
            faults.append(f"{which} cell: node {expected} is missing (found {key!r} in its place)")
            return ()
        if not isinstance(edges, list):
            faults.append(f"{at}: it is not a list of edges")
            return ()
        read = []
        for number, edge in enumerate(edges):
            match edge:
                case [str(operation), int(source)] if not isinstance(source, bool):
                    read.append(Edge(operation, source))
                case _:
                    faults.append(f'{at}, edge {number}: {edge!r} is not a pair such as ["skip", 0]')
                    return ()
        nodes.append(tuple(read))
    if not nodes:
        faults.append(f"{which} cell: it has no intermediate node")
    return tuple(nodes)
