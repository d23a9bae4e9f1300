"""Parts in lanes give what the same parts give in a row; that captured steps do is checked where there is a GPU."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from sphynx.search.supernet.cellspace import KINDS, CellSpace
from sphynx.search.supernet.lanes import side_by_side, start
from sphynx.search.supernet.mixture import Mixture
from sphynx.search.supernet.supernet import Supernet
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape


def test_without_lanes_a_part_is_computed_at_once() -> None:
    x, done = torch.ones(2), []

    def add_one(value: Tensor) -> Tensor:
        done.append(value)
        return value + 1

    part = start(add_one, x)
    assert done and torch.equal(part.join(), torch.full((2,), 2.0))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gradients_over_several_streams_are_those_of_one() -> None:
    torch.manual_seed(0)
    space = CellSpace()
    one = Supernet(Design(SPHYNX, 4, 5, (0, 1), Shape(3, 32, 32), 10), space).cuda().double()
    several = copy.deepcopy(one)
    x = torch.randn(16, 3, 32, 32, device="cuda", dtype=torch.double)
    shape = (len(space.edges), len(space.candidates))
    mixtures = {kind: Mixture(weights=torch.rand(shape, device="cuda").double().softmax(-1)) for kind in KINDS}
    one(x, mixtures).square().mean().backward()
    with side_by_side(x.device):
        several(x, mixtures).square().mean().backward()
    for expected, found in zip(one.parameters(), several.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad)
