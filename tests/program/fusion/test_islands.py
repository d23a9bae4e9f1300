"""Which joints depend on one another: cells and stages are islands, a stage of residual blocks is one."""

import torch

from sphynx.program.fusion.islands import find_islands
from tests.program.fusion.test_choose import inverted_residuals, outlined


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
