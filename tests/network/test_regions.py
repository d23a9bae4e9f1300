"""Compiled blocks against the network as written; "aot_eager" traces and differentiates as "inductor" does."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from sphynx.network.build import build_network
from sphynx.network.regions import as_written, compile_regions
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.published_cells import SPHYNX
from sphynx.space.reference import ResNet18Design, Vgg11Design
from sphynx.space.tally import Shape

IMAGE = Shape(3, 32, 32)
DESIGNS: dict[str, AnyDesign] = {
    "sphynx": Design(SPHYNX, 1, 2, (0,), IMAGE, 10, conv_stack="single"),
    "resnet18": ResNet18Design(4, IMAGE, 10, "small"),
    "vgg11": Vgg11Design(4, IMAGE, 10),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "sphynx" else pytest.mark.slow) for name in DESIGNS]
)
def test_compiled_gradients_equal_those_as_written(name: str) -> None:
    torch.manual_seed(0)
    written = build_network(DESIGNS[name], drop_path=True)
    compiled = copy.deepcopy(written)
    compile_regions(compiled, backend="aot_eager")
    x = torch.randn(4, *IMAGE)
    losses = []
    for network in (written, compiled):
        torch.manual_seed(1)  # drop-path
        loss = network(x).square().mean()
        loss.backward()
        losses.append(loss.detach())
    torch.testing.assert_close(losses[1], losses[0])
    for expected, found in zip(written.parameters(), compiled.parameters(), strict=True):
        torch.testing.assert_close(found.grad, expected.grad, rtol=1e-3, atol=1e-5)


def test_weights_can_be_handed_over_from_outside() -> None:
    """As the training step does with its half-precision copies."""
    torch.manual_seed(0)
    network = build_network(DESIGNS["sphynx"])
    expected = copy.deepcopy(network)
    compile_regions(network, backend="aot_eager")
    copies = {name: (2 * p.detach()).requires_grad_() for name, p in network.named_parameters()}
    with torch.no_grad():
        for p in expected.parameters():
            p.mul_(2)
    x = torch.randn(2, *IMAGE)
    torch.testing.assert_close(torch.func.functional_call(network, copies, (x,)), expected(x))


def test_evaluation_runs_as_written() -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("a graph was compiled")

    network = build_network(DESIGNS["sphynx"]).eval()
    compile_regions(network, backend=refuse)
    with as_written(network), torch.no_grad():
        assert network(torch.randn(2, *IMAGE)).shape == (2, 10)


def test_networks_that_are_not_compiled_stay_as_they_are() -> None:
    layer = nn.Linear(2, 2)
    with as_written(layer):
        assert layer(torch.zeros(1, 2)).shape == (1, 2)
