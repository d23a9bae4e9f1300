"""Parts in lanes give what the same parts give in a row; that captured steps do is checked where there is a GPU."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor

from sphynx.network import lanes
from sphynx.network.build import build_network
from sphynx.network.lanes import pass_on, side_by_side, start
from sphynx.space.design import Design
from sphynx.space.published import SPHYNX
from sphynx.space.tally import Shape


def test_without_lanes_a_part_is_computed_at_once() -> None:
    x, done = torch.ones(2), []

    def add_one(value: Tensor) -> Tensor:
        done.append(value)
        return value + 1

    part = start(add_one, x)
    assert done and torch.equal(part.join(), torch.full((2,), 2.0))
    assert pass_on(x).join() is x


def test_what_is_passed_on_gets_a_gradient_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum gives both terms one tensor, which autograd would change in place while another lane reads it."""
    monkeypatch.setattr(lanes, "_lanes", object())
    x = torch.ones(3, requires_grad=True)
    gradients: list[Tensor] = []
    handed_on, computed = 2 * x, 3 * x
    for term in (handed_on, computed):
        term.register_hook(gradients.append)
    (pass_on(handed_on).join() + computed).backward(torch.ones(3))
    first, second = gradients
    assert torch.equal(first, second) and first.data_ptr() != second.data_ptr()
    assert x.grad is not None and torch.equal(x.grad, torch.full((3,), 5.0))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_gradients_over_several_streams_are_those_of_one() -> None:
    torch.manual_seed(0)
    one = build_network(Design(SPHYNX, 4, 5, (0, 1), Shape(3, 32, 32), 10), auxiliary=True).cuda().double()
    several = copy.deepcopy(one)
    x = torch.randn(16, 3, 32, 32, device="cuda", dtype=torch.double)
    one(x).square().mean().backward()
    with side_by_side(x.device):
        several(x).square().mean().backward()
    for expected, found in zip(one.parameters(), several.parameters(), strict=True):
        if expected.grad is not None:
            torch.testing.assert_close(found.grad, expected.grad)
