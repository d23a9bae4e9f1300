"""Which joints depend on one another: cells and stages are islands, a stage of residual blocks is one."""

from collections.abc import Callable, Collection
from itertools import product

import numpy as np
import pytest
import torch

from sphynx.compiler.fusion.affine import Node, Window
from sphynx.compiler.fusion.choose import Cuts, _cuts, _Search, find_islands
from sphynx.compiler.fusion.fuse import Fused, Fuser
from sphynx.compiler.precision import Precision
from sphynx.program.cost.cost import total_cost
from sphynx.program.cost.deployment import Deployment
from sphynx.program.cost.widths import guess_bits, guess_program
from sphynx.space.tally import Shape
from tests.compiler.fusion.test_choose import inverted_residuals, outlined
from tests.compiler.networks import MEAN, STD

RING_BITS = 56
Body = Callable[[Fuser, Node], Node]


@torch.no_grad()
def test_a_cell_is_an_island_and_owns_its_maps() -> None:
    outline = outlined("paper", 3, 0, 1)
    joints = outline().joints
    islands = find_islands(lambda cuts: outline(cuts=cuts), joints)
    assert sorted(joint for own in islands.joints for joint in own) == sorted(joints)
    for own in islands.joints:
        cells = {".".join(joint.split(".")[:2]) for joint in own} - {"stem"}
        assert len(cells) == 1 or "stem" in own  # all cells that read the stem are one island with it
    owned = {name: islands.owner(name, 0) for name in islands.owners}
    assert owned["cells.2.activation.input"] == islands.owner("cells.2.nodes.0", 0) != islands.rest


def test_blocks_that_add_to_one_stream_are_an_island() -> None:
    outline = inverted_residuals((4, 4, 8, 8, 8))
    joints = outline(()).joints
    islands = find_islands(outline, joints)
    assert [len(own) for own in islands.joints] == [2, 3]
    assert set(islands.others(0)) == set(islands.joints[1])


def convolved(fuser: Fuser, node: Node) -> Node:
    return fuser.convolve(node, np.ones((4, node.shape.channels, 3, 3)), Window(3, 3, 8, 8, top=1, left=1))


def pre_activated(fuser: Fuser, node: Node) -> Node:
    """Blocks rectify what they read, and nothing rectifies the stream before its end."""
    for number in range(3):
        rectified = fuser.relu(fuser.scale(node, np.full(4, 2.0), np.ones(4)), f"{number}")
        node = fuser.joint(node + convolved(fuser, rectified), f"{number}.joint") if number < 2 else node
    return fuser.relu(node + convolved(fuser, rectified), "end")


def sum_of_two(fuser: Fuser, node: Node) -> Node:
    """Each of which another map reads too."""
    one, other = (fuser.joint(convolved(fuser, node), name) for name in ("one", "other"))
    beside = fuser.relu(convolved(fuser, one), "first") + fuser.relu(convolved(fuser, other), "second")
    return fuser.relu(one + other, "sum") + beside


@pytest.mark.parametrize("body", [pre_activated, sum_of_two])
def test_islands_together_cost_what_the_network_costs(body: Body) -> None:
    """Whatever the states of their joints: the search prices each island while all others are truncated."""

    def outline(cuts: Collection[str]) -> Fused:
        fuser = Fuser(Shape(3, 8, 8), MEAN, STD, cuts=cuts, outline=True)
        node = body(fuser, fuser.relu(convolved(fuser, fuser.input), "front"))
        return fuser.finish(fuser.convolve(node, np.ones((10, 4, 8, 8)), Window(8, 8, 1, 1)), "logits")

    joints = outline(()).joints
    islands = find_islands(outline, joints)
    search = _Search(outline, Precision(12, 10, 11), Deployment("gmw"), islands)
    for states in product(range(3), repeat=len(joints)):
        state_of = dict(zip(joints, states, strict=True))
        chosen = [_cuts(own, tuple(state_of[joint] for joint in own)) for own in islands.joints]
        parts = [(islands.rest, Cuts()), *enumerate(chosen)]
        priced = sum(cost.he_products for part in parts for cost in search.cost(*part, RING_BITS).values())
        graph = outline(Cuts().union(*chosen)).graph
        whole = total_cost(guess_program(graph, guess_bits(graph, 12, 10, 11), 12, RING_BITS))
        assert priced == whole.he_products
