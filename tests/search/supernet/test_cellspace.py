"""Edges, derivation, random cells and their comparison."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.search.supernet.cellspace import CellSpace, agreement, count_operation
from sphynx.space.cell import cell
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX


@pytest.mark.parametrize(("nodes", "edges"), [(7, 14), (5, 5), (4, 2)])
def test_every_node_reads_every_earlier_one(nodes: int, edges: int) -> None:
    space = CellSpace(nodes)
    assert len(space.edges) == edges
    for target in space.intermediates:
        assert [space.edges[number] for number in space.incoming(target)] == [(s, target) for s in range(target)]


def test_derives_two_strongest_predecessors_without_zero() -> None:
    space = CellSpace(5, ("conv3", "skip"))
    strengths = [
        [0.1, 0.2, 0.7],  # 0 -> 2: skip
        [0.3, 0.1, 0.6],  # 1 -> 2: conv3
        [0.05, 0.04, 0.91],  # 0 -> 3: weakest but for zero, which does not count
        [0.1, 0.4, 0.5],  # 1 -> 3: skip
        [0.3, 0.2, 0.5],  # 2 -> 3: conv3
    ]
    assert space.derive(strengths) == cell("skip 0, conv3 1", "skip 1, conv3 2")


@given(seed=st.integers(0, 10_000), nodes=st.sampled_from([4, 5, 7]))
def test_random_cells_are_valid_and_are_what_their_paths_say(seed: int, nodes: int) -> None:
    space = CellSpace(nodes)
    genotype = space.random_genotype(random.Random(seed))
    assert genotype.nodes == nodes
    for one in (genotype.normal, genotype.reduce):
        paths = space.paths_of(one)
        assert space.derive([[float(c in columns) for c in range(7)] for columns in paths]) == one


def test_agreement_counts_common_edges() -> None:
    assert agreement(SPHYNX, SPHYNX) == 1.0
    other = Genotype(SPHYNX.reduce, SPHYNX.reduce)
    assert 0.5 <= agreement(SPHYNX, other) < 1.0
    assert count_operation(SPHYNX.normal, "skip") == 4
