"""Cuts by cost: whole cells where that is cheap, chains where borders would cost more than they save."""

import gc
import weakref
from collections.abc import Callable, Collection
from dataclasses import replace
from functools import partial

import numpy as np
import torch

from sphynx.compiler.frontend.torch_network import trace
from sphynx.compiler.fusion.affine import Node, Window, compose_outline, keeping_outlines
from sphynx.compiler.fusion.choose import choose_cuts
from sphynx.compiler.fusion.fuse import Fused, Fuser, truncated_joint
from sphynx.compiler.precision import Precision
from sphynx.program.cost.cost import total_cost
from sphynx.program.cost.deployment import Deployment
from sphynx.program.cost.link import LINKS
from sphynx.program.cost.widths import compared_tensors, guess_bits, guess_program
from sphynx.program.ir import Graph
from sphynx.space.choices import ConvStack
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from tests.compiler.networks import MEAN, STD, random_network


def outlined(conv_stack: ConvStack, depth: int, *reduce_at: int) -> partial[Fused]:
    design = Design(SPHYNX, 5, depth, reduce_at, Shape(3, 32, 32), 100, conv_stack=conv_stack)
    return partial(trace, random_network(design), MEAN, STD, outline=True)


def ring_and_products(outline: partial[Fused], cuts: Collection[str]) -> tuple[int, int]:
    graph = outline(cuts=cuts).graph
    program = guess_program(graph, guess_bits(graph, 8, 10, 7), 8)
    return program.ring_bits, total_cost(program).he_products


@torch.no_grad()
def test_cells_of_single_convolutions_are_one_map_each() -> None:
    outline = outlined("single", 3, 0, 1)
    assert choose_cuts(lambda cuts: outline(cuts=cuts)) == frozenset()
    graph = outline().graph
    assert {step.name for step in graph.linears} == compared_tensors(graph)
    assert ring_and_products(outline, ())[0] <= 32 < ring_and_products(outline, outline().joints)[0]


@torch.no_grad()
def test_padded_stacks_stay_chains_of_two() -> None:
    outline = outlined("paper", 1)
    joints = outline().joints
    cuts = choose_cuts(lambda cuts: outline(cuts=cuts))
    assert {"cells.0.edges.4.2.input", "cells.0.edges.6.2.input"} <= cuts < set(joints)
    ring_bits, products = ring_and_products(outline, cuts)
    assert ring_bits < ring_and_products(outline, joints)[0]
    assert products < ring_and_products(outline, ())[1] / 2


def inverted_residuals(widths: tuple[int, ...]) -> Callable[[Collection[str]], Fused]:
    """MobileNetV2's blocks: thin maps that nothing rectifies, each expanded, convolved channel by channel, reduced."""

    def outline(cuts: Collection[str]) -> Fused:
        fuser = Fuser(Shape(3, 16, 16), MEAN, STD, cuts=cuts, outline=True)
        size, wide = Window(1, 1, 16, 16), 96
        node = fuser.relu(fuser.convolve(fuser.input, np.ones((16, 3, 3, 3)), Window(3, 3, 16, 16, top=1, left=1)), "0")
        channels = 16
        for number, width in enumerate(widths):
            x = fuser.relu(fuser.convolve(node, np.ones((wide, channels, 1, 1)), size), f"{number}.expanded")
            x = fuser.convolve(x, np.ones((wide, 1, 3, 3)), Window(3, 3, 16, 16, top=1, left=1), groups=wide)
            x = fuser.convolve(fuser.relu(x, f"{number}.activation"), np.ones((width, wide, 1, 1)), size)
            node = fuser.joint(x + node if width == channels else x, f"{number}.joint")
            channels = width
        return fuser.finish(fuser.convolve(node, np.ones((10, channels, 16, 16)), Window(16, 16, 1, 1)), "logits")

    return outline


def test_thin_maps_of_inverted_residuals_are_truncated_instead_of_expanded_again_and_again() -> None:
    outline = inverted_residuals((16, 16, 16, 16))
    cuts = choose_cuts(outline, Precision(12, 10, 11))
    assert {truncated_joint(joint) for joint in outline(()).joints[:-1]} <= cuts
    whole, cut = (guess_program(g, guess_bits(g, 12, 10, 11), 12) for g in (outline(()).graph, outline(cuts).graph))
    assert total_cost(cut).he_products < total_cost(whole).he_products
    assert cut.ring_bits <= whole.ring_bits + 1


def two_maps(cut: str) -> Graph:
    """Cut behind the first, which sums more than any other."""
    fuser = Fuser(Shape(3, 4, 4), MEAN, STD, cuts=[cut], outline=True)
    padded = Window(3, 3, 4, 4, top=1, left=1)
    node = fuser.relu(fuser.convolve(fuser.input, np.ones((64, 3, 3, 3)), padded), "relu")
    node = fuser.joint(fuser.convolve(node, np.ones((2, 64, 3, 3)), padded), "joint")
    return fuser.finish(fuser.convolve(node, np.ones((10, 2, 4, 4)), Window(4, 4, 1, 1)), "logits").graph


def test_the_guessed_ring_is_wider_than_what_is_truncated_in_it() -> None:
    graph = two_maps(truncated_joint("joint"))
    bits = guess_bits(graph, 12, 10, 11)
    program = guess_program(graph, bits, 12)
    ranges = {step.name: step.range_bits for step in program.linears}
    assert ranges["joint"] == bits["joint"] == program.ring_bits - 1


def test_only_links_of_chains_are_guessed_by_their_own_bits() -> None:
    for cut, difference in (("joint", 3), (truncated_joint("joint"), 0)):
        coarse, fine = (guess_bits(two_maps(cut), 12, 10, link_bits)["joint"] for link_bits in (8, 11))
        assert fine - coarse == difference


def test_memory_and_bundles_set_the_price() -> None:
    """Weights that memory does not hold are transformed for each preparation: then fewer of them are better."""
    outline = inverted_residuals((32, 32, 32))

    def weights(deployment: Deployment) -> int:
        graph = outline(choose_cuts(outline, Precision(12, 10, 11), deployment)).graph
        return total_cost(guess_program(graph, guess_bits(graph, 12, 10, 11), 12)).he_weights

    held, tight = (Deployment("gmw", LINKS["lan"], 1, memory) for memory in (None, 0))
    assert weights(tight) < weights(held)
    assert weights(replace(tight, bundles=1000)) > weights(tight)


def test_outlines_are_kept_no_longer_than_a_search() -> None:
    node, weights = Node(Shape(1, 4, 4), {}, np.ones((1, 4, 4))), np.ones((1, 1, 3, 3))
    window = Window(3, 3, 4, 4, top=1, left=1)
    with keeping_outlines():
        kept = weakref.ref(compose_outline(node, weights, window, 1).bias)
        gc.collect()
        assert compose_outline(node, weights, window, 1).bias is kept() is not None
    gc.collect()
    assert kept() is None
