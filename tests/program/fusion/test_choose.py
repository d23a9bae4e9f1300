"""Cuts by cost: whole cells where that is cheap, chains where borders would cost more than they save."""

from collections.abc import Collection
from functools import partial

import torch

from sphynx.program.cost.cost import total_cost
from sphynx.program.cost.widths import compared_tensors, guess_bits, guess_program
from sphynx.program.frontend.torch_network import trace
from sphynx.program.fusion.choose import choose_cuts
from sphynx.program.fusion.fuse import Fused
from sphynx.space.choices import ConvStack
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from tests.program.networks import MEAN, STD, random_network


def outlined(conv_stack: ConvStack) -> partial[Fused]:
    design = Design(SPHYNX, 5, 3, (0, 1), Shape(3, 32, 32), 100, conv_stack=conv_stack)
    return partial(trace, random_network(design), MEAN, STD, outline=True)


def ring_and_products(outline: partial[Fused], cuts: Collection[str]) -> tuple[int, int]:
    graph = outline(cuts=cuts).graph
    program = guess_program(graph, guess_bits(graph, 8, 10, 7), 8)
    return program.ring_bits, total_cost(program).he_products


@torch.no_grad()
def test_cells_of_single_convolutions_are_one_map_each() -> None:
    outline = outlined("single")
    assert choose_cuts(lambda cuts: outline(cuts=cuts)) == frozenset()
    graph = outline().graph
    assert {step.name for step in graph.linears} == compared_tensors(graph)
    assert ring_and_products(outline, ())[0] <= 32 < ring_and_products(outline, outline().joints)[0]


@torch.no_grad()
def test_padded_stacks_stay_chains_of_two() -> None:
    outline = outlined("paper")
    joints = outline().joints
    cuts = choose_cuts(lambda cuts: outline(cuts=cuts))
    assert {"cells.2.edges.4.2.input", "cells.2.edges.6.2.input"} <= cuts < set(joints)
    ring_bits, products = ring_and_products(outline, cuts)
    assert ring_bits < ring_and_products(outline, joints)[0]
    assert products < ring_and_products(outline, ())[1] / 2
