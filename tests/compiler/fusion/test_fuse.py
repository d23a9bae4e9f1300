"""The fused network equals the torch network in real numbers, borders included."""

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sphynx.compiler.derive import can_be_walked, trace_stored
from sphynx.compiler.frontend.torch_network import trace
from sphynx.compiler.fusion.affine import Window
from sphynx.compiler.fusion.fuse import Fused, Fuser
from sphynx.network.build import AnyNetwork
from sphynx.network.stored import StoredNetwork
from sphynx.program.cost.widths import compared_tensors
from sphynx.program.interpret import evaluate
from sphynx.program.ir import Combine, Linear, Relu
from sphynx.space.design import Design
from sphynx.space.files import AnyDesign
from sphynx.space.published_cells import SPHYNX
from sphynx.space.reference import ResNet18Design, Vgg11Design
from sphynx.space.tally import Shape
from tests.compiler.networks import MEAN, STD, normalised, random_network
from tests.space.strategies import designs


def fused(network: AnyNetwork, **options: Any) -> Fused:
    channels = network.design.image.channels
    return trace(network, MEAN[:channels], STD[:channels], **options)


def assert_equal(design: AnyDesign, draw_cuts: Callable[[tuple[str, ...]], Collection[str]] = lambda _: ()) -> Fused:
    """Also that the outline has the very steps of the network with its weights, and that a network of cells or a stream
    is fused from its stored arrays alone to the same numbers."""
    network = random_network(design)
    cuts = draw_cuts(fused(network, outline=True).joints)
    pixels = torch.randint(0, 256, (3, *design.image), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = network(normalised(pixels)).numpy()
    compiled = fused(network, cuts=cuts)
    assert compiled.graph == fused(network, cuts=cuts, outline=True).graph
    if can_be_walked(design):
        arrays = {name: tensor.numpy() for name, tensor in network.state_dict().items()}
        channels = design.image.channels
        stored = trace_stored(StoredNetwork(design, arrays), MEAN[:channels], STD[:channels], cuts=cuts)
        assert stored.graph == compiled.graph and stored.joints == compiled.joints
        assert all(np.array_equal(stored.weights[name], array) for name, array in compiled.weights.items())
    got = evaluate(compiled.graph, compiled.weights, pixels.numpy().astype(np.float64), lambda *_: None)
    scale = np.abs(expected).max() + 1
    assert np.abs(got - expected).max() < 1e-9 * scale
    assert {name: array.shape for name, array in compiled.weights.items()} == compiled.graph.weight_shapes
    return compiled


def shallow(design: Design) -> Design:
    """Two cells of each kind show all there is, in less time."""
    positions = tuple(position for position in design.reduce_positions if position < 3)
    return replace(design, depth=min(design.depth, 3), reduce_positions=positions)


@settings(max_examples=8)
@given(design=designs().map(shallow), inner_relus=st.sampled_from([False, False, False, True]))
def test_any_design(design: Design, inner_relus: bool) -> None:
    graph = assert_equal(replace(design, inner_relus=inner_relus)).graph
    edges = [edge for cell in (design.genotype.normal, design.genotype.reduce) for node in cell for edge in node]
    if not any(edge.operation == "avg_pool" for edge in edges):
        assert {step.name for step in graph.linears} == compared_tensors(graph)  # one map, borders and all


@settings(max_examples=6)
@given(design=designs().map(shallow), data=st.data())
def test_any_cuts(design: Design, data: st.DataObject) -> None:
    def some(joints: tuple[str, ...]) -> Collection[str]:
        return data.draw(st.sets(st.sampled_from(joints))) if joints else ()

    assert_equal(design, some)


@pytest.mark.parametrize("conv_stack", ["single", "pad_once"])
def test_the_published_cells_become_one_convolution_per_input(conv_stack: str) -> None:
    design = Design(SPHYNX, 3, 5, (1, 3), Shape(3, 16, 16), 10, conv_stack=conv_stack)  # type: ignore[arg-type]
    steps = assert_equal(design).graph.steps
    linears = {step.name: step for step in steps if isinstance(step, Linear)}
    for position in (2, 4):
        sources = linears[f"cells.{position}.activation.input"].sources
        assert sources == (f"cells.{position - 2}.activation", f"cells.{position - 1}.activation")
        assert not any(
            name.startswith(f"cells.{position}.") and not name.endswith("activation.input") for name in linears
        )


def test_a_cut_makes_a_chain() -> None:
    design = Design(SPHYNX, 3, 3, (), Shape(3, 12, 12), 10, conv_stack="paper")
    cuts = ("cells.2.edges.4.2.input", "cells.2.edges.6.2.input")
    compiled = assert_equal(design, lambda _: cuts)
    assert tuple(step.name for step in compiled.graph.linears if "edges" in step.name) == cuts


def test_a_border_takes_rows_columns_and_corners() -> None:
    """The second 3x3 of a padded stack reads one row beyond the first one's border, on each side."""
    design = Design(SPHYNX, 3, 3, (), Shape(3, 12, 12), 10, conv_stack="paper")
    compiled = assert_equal(design, lambda joints: [joint for joint in joints if joint != "cells.2.edges.6.2.input"])
    (step,) = (step for step in compiled.graph.linears if step.name == "cells.2.activation.input")
    crops = {source.removeprefix("cells.1.activation") for source in step.sources if source.startswith("cells.1.a")}
    sides = ("0:1", "11:12", "0:12")
    assert crops == {
        f"[{rows},{columns}]" for rows in sides for columns in sides if (rows, columns) != sides[2:] * 2
    } | {""}


@pytest.mark.parametrize(
    "design",
    [
        ResNet18Design(4, Shape(3, 32, 32), 10, "small", "average"),
        ResNet18Design(4, Shape(3, 45, 64), 10, "imagenet", "average"),
        Vgg11Design(2, Shape(3, 32, 32), 10, 16, "average"),
        Vgg11Design(2, Shape(3, 232, 64), 5, 16, "average"),
    ],
    ids=str,
)
def test_reference_networks(design: AnyDesign) -> None:
    assert_equal(design)


def test_a_residual_sum_is_public() -> None:
    """No product with the identity: a shortcut that convolves nothing is a summand."""
    graph = assert_equal(ResNet18Design(4, Shape(3, 32, 32), 10, "small", "average")).graph
    sums = [step for step in graph.steps if isinstance(step, Combine)]
    assert [step.name for step in sums] == [f"blocks.{n}.activation.input" for n in (0, 1, 3, 5, 7)]
    assert [summand.source for summand in sums[1].summands] == ["blocks.1.activation.input.map", "blocks.0.activation"]
    for step in graph.linears:
        assert len(step.terms) == (2 if step.name.endswith("activation.input") else 1)  # one with a strided shortcut
    assert not graph.links


@settings(max_examples=20)
@given(data=st.data())
def test_a_mean_behind_convolutions_reads_window_sums(data: st.DataObject) -> None:
    """Compare any geometry, with borders, against torch; a global mean makes no link of a chain."""
    draw = data.draw
    torch.manual_seed(draw(st.integers(0, 99)))
    size = (draw(st.integers(6, 9)), draw(st.integers(6, 9)))
    layers = [
        nn.Conv2d(channels, 3, draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(0, 2)))
        for channels in (2, 3)[: draw(st.integers(1, 2))]
    ]
    x = torch.randn(2, 2, *size, dtype=torch.float64)
    fuser = Fuser(Shape(2, *size), (0.0,) * 2, (1 / 255,) * 2)
    node, y = fuser.input, x
    for layer in layers:
        layer.double()
        y = layer(y)
        rows, stride, pad = layer.kernel_size[0], layer.stride[0], int(layer.padding[0])
        weights, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()  # type: ignore[union-attr]
        window = Window(rows, rows, y.shape[2], y.shape[3], stride, 1, pad, pad)
        node = fuser.scale(fuser.convolve(node, weights, window), np.ones(3), bias)
    spans: list[tuple[tuple[int, int], ...]] = [((0, length),) for length in y.shape[2:]]
    if draw(st.booleans()) or min(y.shape[2:]) < 2:
        expected = y.mean((2, 3), keepdim=True)
    else:
        spans = [((0, length // 2), (length // 2, length)) for length in y.shape[2:]]
        expected = torch.stack(
            [torch.stack([y[:, :, a:b, c:d].mean((2, 3)) for c, d in spans[1]], 2) for a, b in spans[0]], 2
        )
    fused = fuser.finish(fuser.average(node, spans[0], spans[1], "mean"), "logits")
    got = evaluate(fused.graph, fused.weights, x.numpy(), lambda *_: None)
    assert np.abs(got - expected.detach().numpy().reshape(2, -1)).max() < 1e-9
    if expected.shape[2:] == (1, 1):
        assert not fused.graph.links


def test_relus_are_counted_as_the_design_counts_them() -> None:
    design = Design(SPHYNX, 3, 5, (1, 3), Shape(3, 16, 16), 10, conv_stack="single")
    assert assert_equal(design).graph.relu_count == 16 * 16 * 3 * 5


def test_a_max_pool_is_exact_and_counted_apart() -> None:
    """Pooled first, n comparisons and ReLUs in all; the design counts ReLUs and comparisons in the network's order."""
    graph = assert_equal(Vgg11Design(2, Shape(3, 32, 32), 10, 16, "max")).graph
    first = Shape(2, 32, 32)
    relus = [step for step in graph.steps if isinstance(step, Relu)]
    assert [step.comparison for step in relus[:3]] == [True, True, False]
    assert sum(graph.shapes[step.name].size for step in relus[:3]) == first.size
    assert_equal(ResNet18Design(4, Shape(3, 45, 64), 10, "imagenet", "max"))
