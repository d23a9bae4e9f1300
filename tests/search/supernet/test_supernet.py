"""The supernet against the finished networks: the same weights through the same cells give the same logits."""

from __future__ import annotations

import random
from typing import Any, get_args

import pytest
import torch
from torch import nn

from sphynx.network.builder import SphynxNetwork
from sphynx.network.operations import FactorizedReduction, build_operation
from sphynx.search.choices import SupernetForm
from sphynx.search.supernet.cellspace import KINDS, CellSpace
from sphynx.search.supernet.fan import Fan, StackedConvolution, StackedReduction
from sphynx.search.supernet.mixture import Mixture, single_path
from sphynx.search.supernet.supernet import Supernet, SupernetCell
from sphynx.space.choices import ConvStack
from sphynx.space.design import Design
from sphynx.space.genotype import SPHYNX_OPERATIONS, Genotype
from sphynx.space.tally import Shape

IMAGE = Shape(3, 9, 8)
CHANNELS = 5


def copied(fan: Fan, operation: str, target: int, *, stride: int, conv_stack: ConvStack = "paper") -> nn.Module:
    """The finished network's module for one edge, with the weights that the fan has for it."""
    module = build_operation(operation, fan.part, stride=stride, conv_stack=conv_stack, affine=False)
    if operation not in fan.modules_by_operation:
        return module
    stacked = fan.modules_by_operation[operation]
    rows = slice(target * fan.part, (target + 1) * fan.part)
    with torch.no_grad():
        if isinstance(stacked, StackedConvolution):
            convolutions = [part for part in module.modules() if isinstance(part, nn.Conv2d)]
            for convolution, weight in zip(convolutions, stacked.weights, strict=True):
                convolution.weight.copy_(weight[rows])
        else:
            assert isinstance(stacked, StackedReduction) and isinstance(module, FactorizedReduction)
            assert module.even is not None
            module.even.weight.copy_(stacked.even[target])
            module.odd.weight.copy_(stacked.odd[target])
    return module


@pytest.mark.parametrize("conv_stack", ["paper", "single", "pad_once"])
@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("operation", SPHYNX_OPERATIONS)
def test_stacked_operations_equal_separate_ones(operation: str, stride: int, conv_stack: ConvStack) -> None:
    torch.manual_seed(0)
    fan = Fan((operation, "zero"), CHANNELS, 3, stride=stride, conv_stack=conv_stack)
    x = torch.randn(4, CHANNELS, 9, 8)
    weights = torch.rand(3, 2)
    mixed = fan.mix(x, weights, None).unbind(1)
    for target in range(3):
        expected = copied(fan, operation, target, stride=stride, conv_stack=conv_stack)(x)
        assert torch.allclose(fan.one(x, 0, target), expected, atol=1e-5)
        assert torch.allclose(mixed[target], weights[target, 0] * expected, atol=1e-5)


def skeleton(genotype: Genotype, **changes: Any) -> Design:
    values: dict[str, Any] = {"depth": 4, "reduce_positions": (1, 2), "conv_stack": "paper", **changes}
    return Design(genotype, CHANNELS, image=IMAGE, classes=7, **values)


def finished(supernet: Supernet, genotype: Genotype) -> SphynxNetwork:
    """The genotype's network with the supernet's weights."""
    network = SphynxNetwork(skeleton(genotype, depth=supernet.skeleton.depth))
    network.stem.load_state_dict(supernet.stem.state_dict(), strict=False)
    network.head.load_state_dict(supernet.head.state_dict())
    for cell, source in zip(network.cells, supernet.cells, strict=True):
        assert isinstance(source, SupernetCell)
        for name in ("input_older", "input_newer", "output"):
            getattr(cell, name).load_state_dict(getattr(source, name).state_dict(), strict=False)
        pairs = genotype.reduce if source.kind == "reduce" else genotype.normal
        number = 0
        for target, pair in zip(source.space.intermediates, pairs, strict=True):
            for operation, node in pair:
                stride = 2 if source.kind == "reduce" and node < 2 else 1
                fan = source.fans[node]
                assert isinstance(fan, Fan)
                edge = copied(fan, operation, source.targets[node].index(target), stride=stride)
                assert isinstance(cell.edges, nn.ModuleList)
                cell.edges[number].load_state_dict(edge.state_dict(), strict=False)
                number += 1
    return network


@pytest.mark.parametrize("seed", range(4))
def test_a_single_path_is_the_finished_network(seed: int) -> None:
    torch.manual_seed(seed)
    space = CellSpace(7)
    genotype = space.random_genotype(random.Random(seed))
    supernet = Supernet(skeleton(genotype), space)
    x = torch.randn(6, *IMAGE)
    expected = finished(supernet, genotype)(x)  # in training mode: batch statistics
    assert torch.allclose(supernet(x, single_path(space, genotype)), expected, atol=1e-4)


def test_one_hot_weights_are_the_single_path() -> None:
    torch.manual_seed(1)
    space = CellSpace(5)
    genotype = space.random_genotype(random.Random(1))
    supernet = Supernet(skeleton(genotype), space, channel_divisor=2)
    paths = single_path(space, genotype)
    mixtures = {}
    for kind in KINDS:
        weights, edges = torch.zeros(len(space.edges), len(space.candidates)), torch.zeros(len(space.edges))
        for edge, columns in enumerate(paths[kind].paths or ()):
            weights[edge, list(columns)] = 1.0
            edges[edge] = float(len(columns) > 0)
        mixtures[kind] = Mixture(weights=weights, edges=edges)
    x = torch.randn(6, *IMAGE)
    assert torch.allclose(supernet(x, mixtures), supernet(x, paths), atol=1e-4)


def test_partial_channels_leave_the_rest_as_it_is() -> None:
    fan = Fan(("conv3", "zero"), 8, 2, stride=1, conv_stack="paper", channel_divisor=4)
    x = torch.randn(2, 8, 4, 4)
    out = fan.one(x, 0, 1)
    assert fan.part == 2
    # ShuffleNet's order for 8 channels in 4 groups: 0 2 4 6 1 3 5 7; channels 2.. went around.
    assert fan.shuffle.tolist() == [0, 2, 4, 6, 1, 3, 5, 7]
    assert torch.equal(out[:, [1, 2, 3, 5, 6, 7]], x[:, [2, 4, 6, 3, 5, 7]])


@pytest.mark.parametrize("channels", [1, 5, 20])
def test_the_shuffle_is_a_permutation(channels: int) -> None:
    fan = Fan(("skip", "zero"), channels, 1, stride=2, conv_stack="paper", channel_divisor=4)
    assert sorted(fan.shuffle.tolist()) == list(range(channels))
    assert fan.one(torch.randn(2, channels, 5, 7), 0, 0).shape == (2, channels, 3, 4)


def test_a_node_that_receives_nothing_is_zero() -> None:
    space = CellSpace(5, ("skip",))
    genotype = space.random_genotype(random.Random(0))
    supernet = Supernet(skeleton(genotype), space)
    nothing = {kind: Mixture(paths=((1,),) * len(space.edges)) for kind in KINDS}
    assert torch.isfinite(supernet(torch.randn(4, *IMAGE), nothing)).all()


def test_a_supernet_has_no_running_statistics_and_no_scales_in_cells() -> None:
    supernet = Supernet(skeleton(CellSpace(5).random_genotype(random.Random(0))), CellSpace(5))
    assert not [name for name in supernet.state_dict() if "running" in name or "num_batches" in name]
    for cell in supernet.cells:
        assert all(not norm.affine for norm in cell.modules() if isinstance(norm, nn.BatchNorm2d))
    torch.manual_seed(0)
    x = torch.randn(4, *IMAGE)
    mixtures = {kind: Mixture(weights=torch.rand(5, 7)) for kind in KINDS}
    trained, asked = supernet(x, mixtures), supernet.eval()(x, mixtures)
    assert torch.allclose(trained, asked, atol=1e-4)  # a kernel may add up in another order


def test_the_released_form_rectifies_nodes_instead_of_the_cells_output() -> None:
    """The paper's text and its released code differ in signs, and in widths after a reduction."""
    space = CellSpace(5)
    genotype = space.random_genotype(random.Random(0))
    torch.manual_seed(0)
    x = torch.randn(4, *IMAGE)
    mixtures = {kind: Mixture(weights=torch.rand(5, 7)) for kind in KINDS}
    least = {}
    for form in get_args(SupernetForm):
        supernet = Supernet(skeleton(genotype), space, form=form)
        cell = supernet.cells[0]
        assert isinstance(cell, SupernetCell)
        seen: list[torch.Tensor] = []
        cell.output.register_forward_pre_hook(lambda _module, args, seen=seen: seen.append(args[0].detach()))
        cell.register_forward_hook(lambda _module, _args, out, seen=seen: seen.append(out.detach()))
        supernet(x, mixtures)
        least[form] = [float(tensor.min()) for tensor in seen]  # of what joins the nodes, of what leaves the cell
    assert least["text"][0] < 0 <= least["text"][1]
    assert least["released"][1] < 0 <= least["released"][0]
