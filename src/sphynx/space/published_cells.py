"""Genotypes from the literature, by name, and the paper's conversion of micro-search cells into the Sphynx space."""

from __future__ import annotations

from pathlib import Path

from sphynx.errors import InputError
from sphynx.space.cell import Cell, Edge, cell
from sphynx.space.genotype import Genotype

# Cho et al. 2021, figure "Normal and reduce cells found by Sphynx from CIFAR-100", as the authors released them.
SPHYNX = Genotype(
    normal=cell("skip 0, skip 1", "skip 2, dil5 0", "conv5 2, dil3 0", "conv3 1, skip 2"),
    reduce=cell("conv3 0, conv3 1", "skip 0, conv3 2", "dil3 0, skip 2", "conv5 0, skip 4"),
    name="sphynx",
)

# Liu et al. 2019 (DARTS), first- and second-order search on CIFAR-10.
DARTS_V1 = Genotype(
    normal=cell("sep3 1, sep3 0", "skip 0, sep3 1", "skip 0, sep3 1", "sep3 0, skip 2"),
    reduce=cell("max_pool 0, max_pool 1", "skip 2, max_pool 0", "max_pool 0, skip 2", "skip 2, avg_pool 0"),
    space="micro",
    name="darts-v1",
)
DARTS_V2 = Genotype(
    normal=cell("sep3 0, sep3 1", "sep3 0, sep3 1", "sep3 1, skip 0", "skip 0, sep_dil3 2"),
    reduce=cell("max_pool 0, max_pool 1", "skip 2, max_pool 1", "max_pool 0, skip 2", "skip 2, max_pool 1"),
    space="micro",
    name="darts-v2",
)

# Xu et al. 2020 (PC-DARTS), searched on CIFAR-10.
_PC_DARTS_NORMAL = cell("sep3 1, skip 0", "sep3 0, sep_dil3 1", "sep5 0, sep3 1", "avg_pool 0, sep_dil3 1")
PC_DARTS = Genotype(
    normal=_PC_DARTS_NORMAL,
    reduce=cell("sep5 1, max_pool 0", "sep5 1, sep5 2", "sep3 0, sep3 3", "sep3 1, sep3 2"),
    space="micro",
    name="pc-darts",
)
# The variant that the Sphynx paper recycles, as its code lists it: reduce node 3 takes a skip from node 2, node 4 reads
# 0 and 2.
PC_DARTS_SKIP = Genotype(
    normal=_PC_DARTS_NORMAL,
    reduce=cell("sep5 1, max_pool 0", "sep5 1, skip 2", "sep3 0, sep3 2", "sep3 1, sep3 2"),
    space="micro",
    name="pc-darts-skip",
)

GENOTYPES = {g.name: g for g in (SPHYNX, DARTS_V1, DARTS_V2, PC_DARTS, PC_DARTS_SKIP)}

# The paper's rules 1-3: separable becomes vanilla, ReLU-Conv-BN becomes Conv-BN, max pool becomes average pool.
# Rule 4, the ReLU at the end of each cell, is part of every Sphynx cell.
_INTO_SPHYNX = {
    "sep3": "conv3",
    "sep5": "conv5",
    "sep_dil3": "dil3",
    "sep_dil5": "dil5",
    "max_pool": "avg_pool",
    "avg_pool": "avg_pool",
    "skip": "skip",
}


def genotype_named(name: str) -> Genotype:
    if name not in GENOTYPES:
        raise InputError(
            f"there is no published genotype called {name!r}",
            remedy=f"Use one of {', '.join(GENOTYPES)}, or the path of a genotype file.",
        )
    return GENOTYPES[name]


def find_cells(name_or_file: str | Path) -> Genotype:
    """Published cells by name, or from a genotype's file; those of other spaces are converted to the Sphynx space.

    >>> sphynx.find_cells("sphynx").space
    'sphynx'
    """
    name = str(name_or_file)
    is_file = name not in GENOTYPES and (name.endswith(".json") or Path(name).exists())
    return into_sphynx_space(Genotype.load(Path(name)) if is_file else genotype_named(name))


def into_sphynx_space(genotype: Genotype) -> Genotype:
    """A micro-search genotype recycled in the Sphynx space; a Sphynx genotype as it is."""
    if genotype.space == "sphynx":
        return genotype

    def converted(nodes: Cell) -> Cell:
        return tuple(
            (Edge(_INTO_SPHYNX[a.operation], a.source), Edge(_INTO_SPHYNX[b.operation], b.source)) for a, b in nodes
        )

    return Genotype(converted(genotype.normal), converted(genotype.reduce), "sphynx", f"{genotype.name}-in-sphynx")
