"""Reduced networks compiled: the same answers, as many ReLUs as counted, chosen by channel or value by value."""

import random

import pytest
import torch

import sphynx
from sphynx.compiler.derive import can_be_walked, trace_stored
from sphynx.compiler.frontend.torch_network import trace
from sphynx.network.build import build_network
from sphynx.network.reduced import describe_layers, rectified_layers
from sphynx.network.stored import StoredNetwork
from sphynx.network.trained import TrainedNetwork
from sphynx.program.cost.cost import LayerCost, total_cost
from sphynx.program.folder import content_hash
from sphynx.space.files import AnyDesign
from sphynx.space.reduced import BaseDesign, NonlinearCounts, ReducedDesign
from sphynx.space.reference import ResNet18Design
from sphynx.space.stream import Stage, StreamDesign
from sphynx.space.tally import Shape
from tests.reduce.planted import noisy_data

STREAM = StreamDesign((Stage(4, (3, 3)),), Shape(1, 8, 8), 3)
RESIDUAL = ResNet18Design(width=2, image=Shape(1, 8, 8), classes=3, stem="small")


def with_random_letters(base: BaseDesign, kinds: str) -> TrainedNetwork:
    torch.manual_seed(0)
    letters = random.Random(1)
    layers = rectified_layers(build_network(base), base.image)
    chosen = {name: "".join(letters.choices(kinds, k=shape.channels)) for name, shape in layers.items()}
    return settled(ReducedDesign(base, describe_layers(layers, chosen)))


def settled(design: AnyDesign) -> TrainedNetwork:
    """With running statistics of its images."""
    network, data = build_network(design).train(), noisy_data()
    with torch.no_grad():
        for _ in range(20):
            network((data.train.images / 255 - data.mean[0]) / data.std[0])
    return TrainedNetwork("reduced", network.eval(), data.mean, data.std)


def compile_exactly(network: TrainedNetwork) -> tuple[NonlinearCounts, LayerCost]:
    """Return what the design counts, and what its program costs."""
    compiled = sphynx.compile_network(network, calibrate=noisy_data())
    assert compiled.judged is not None and compiled.judged.read_error is not None
    assert compiled.judged.read_error < 1e-4 and compiled.judged.error < 0.05
    assert isinstance(network.design, ReducedDesign)
    counted, cost = network.design.counts, total_cost(compiled.program)
    assert (cost.relus, cost.squares) == (counted.relus, counted.squares)
    return counted, cost


@pytest.mark.parametrize(
    ("base", "kinds"),
    [
        (STREAM, "ris"),
        (STREAM, "i0"),
        (STREAM, "0"),
        pytest.param(RESIDUAL, "ri0", marks=pytest.mark.slow),
        pytest.param(RESIDUAL, "ris", marks=pytest.mark.slow),
    ],
)
def test_channels_of_any_kind_are_compiled_exactly(base: BaseDesign, kinds: str) -> None:
    network = with_random_letters(base, kinds)
    counted, cost = compile_exactly(network)
    if can_be_walked(network.design):
        arrays = {name: tensor.numpy() for name, tensor in network.module.state_dict().items()}
        stored = trace_stored(StoredNetwork(network.design, arrays), network.mean, network.std)
        assert content_hash(stored.weights) == content_hash(trace(network.module, network.mean, network.std).weights)
    if "s" not in kinds:
        assert cost.truncations <= counted.truncations + network.design.account.total.relus


def with_random_values(base: BaseDesign, kinds: str) -> TrainedNetwork:
    letters = random.Random(2)
    torch.manual_seed(0)
    layers = rectified_layers(build_network(base), base.image)
    chosen = {name: "".join(letters.choices(kinds, k=shape.size)) for name, shape in layers.items()}
    return settled(ReducedDesign(base, describe_layers(layers, chosen)))


@pytest.mark.parametrize(
    ("base", "kinds"),
    [
        (STREAM, "ri"),
        (STREAM, "ris0"),
        (STREAM, "s0"),
        pytest.param(RESIDUAL, "rii", marks=pytest.mark.slow),
        pytest.param(RESIDUAL, "rsss", marks=pytest.mark.slow),
    ],
)
def test_values_of_any_kind_are_compiled_exactly(base: BaseDesign, kinds: str) -> None:
    """As `snl`, `senet` and `autorep` choose them."""
    network = with_random_values(base, kinds)
    counted, cost = compile_exactly(network)
    assert cost.truncations <= counted.truncations + counted.squares


def test_values_chosen_one_by_one_are_asked_privately() -> None:
    compiled = sphynx.compile_network(with_random_values(STREAM, "ris"), calibrate=noisy_data())
    images = noisy_data().test.images[:2].numpy()
    for backend in ("gmw", "gc"):
        answers = compiled.infer_privately(images, backend=backend)
        assert [answer.logits.tolist() for answer in answers] == compiled.infer(images).tolist()
