"""Two independent counts, from the description and by watching a forward pass, are equal for every network."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.network.builder import SphynxNetwork
from sphynx.network.micro import MicroNetwork
from sphynx.network.observe import observe
from sphynx.network.reference import ResNet18, Vgg11, WideResNet
from sphynx.network.stream import StreamNetwork
from sphynx.space.account import account_of
from sphynx.space.design import Design
from sphynx.space.micro import MicroDesign, account_of_micro
from sphynx.space.published_cells import SPHYNX
from sphynx.space.reference import (
    ResNet18Design,
    Vgg11Design,
    WideResNetDesign,
    account_of_resnet18,
    account_of_vgg11,
    account_of_wide_resnet,
)
from sphynx.space.stream import StreamDesign, account_of_stream
from sphynx.space.tally import Shape
from tests.space.strategies import designs, micro_designs, stream_designs

once_per_network = settings(max_examples=15)


@once_per_network
@given(designs())
def test_sphynx_networks(design: Design) -> None:
    assert observe(SphynxNetwork(design, auxiliary=True), design.image) == account_of(design).total


@once_per_network
@given(micro_designs)
def test_micro_search_networks(design: MicroDesign) -> None:
    assert observe(MicroNetwork(design), design.image) == account_of_micro(design).total


@once_per_network
@given(stream_designs)
def test_stream_networks(design: StreamDesign) -> None:
    assert observe(StreamNetwork(design), design.image) == account_of_stream(design).total
    assert design.relus == account_of_stream(design).total.relus


@settings(max_examples=6)
@given(st.sampled_from([10, 16, 22]), st.integers(1, 2), st.integers(4, 21))
def test_wide_resnets(depth: int, width: int, size: int) -> None:
    design = WideResNetDesign(depth, width, Shape(3, size, size + 3), 10)
    assert observe(WideResNet(design), design.image) == account_of_wide_resnet(design).total


@once_per_network
@given(
    st.integers(1, 8), st.integers(32, 75), st.sampled_from(["small", "imagenet"]), st.sampled_from(["max", "average"])
)
def test_resnet18(width: int, size: int, stem: str, pool: str) -> None:
    design = ResNet18Design(width, Shape(3, size, size + 3), 10, stem, pool)  # type: ignore[arg-type]
    assert observe(ResNet18(design), design.image) == account_of_resnet18(design).total


@once_per_network
@given(st.integers(1, 4), st.integers(32, 300), st.sampled_from(["max", "average"]))
def test_vgg11(width: int, size: int, pool: str) -> None:
    design = Vgg11Design(width, Shape(3, size, 64), 10, hidden=16, pool=pool)  # type: ignore[arg-type]
    assert observe(Vgg11(design), design.image) == account_of_vgg11(design).total


def test_parameter_counts_known_from_elsewhere() -> None:
    """The originals at full width, as every model zoo lists them."""
    assert account_of_resnet18(ResNet18Design()).total.parameters == 11_689_512
    assert account_of_vgg11(Vgg11Design()).total.parameters == 132_868_840
    assert account_of_wide_resnet(WideResNetDesign(28, 10, classes=10)).total.parameters == 36_479_194


def test_the_observer_sees_a_relu_however_it_is_written() -> None:
    class Odd(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.nn.functional.relu(self.linear(x.flatten(1)))
            return torch.nn.functional.relu_(x - 1).clamp_min(0)

    seen = observe(Odd(), Shape(1, 2, 2))
    assert (seen.relus, seen.macs, seen.parameters) == (12, 16, 20)


@pytest.mark.parametrize("depth", [5, 6, 8, 10])
def test_the_published_sphynx_networks_built_for_real(depth: int) -> None:
    design = Design(SPHYNX, 5, depth, (0, 1), conv_stack="paper")
    assert observe(SphynxNetwork(design), design.image).relus == 32 * 32 * 5 * depth
