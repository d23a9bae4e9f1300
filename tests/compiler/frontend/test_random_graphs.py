"""Random small networks over all operators, read both ways: fused and cut they equal torch, in doubles (1e-9)."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional
from torch.onnx.errors import SymbolicValueError

from sphynx.compiler.frontend.export.module import read_module
from sphynx.compiler.frontend.onnx.file import read_network
from sphynx.compiler.frontend.operators.network import OperatorNetwork
from sphynx.compiler.fusion.fuse import truncated_joint
from sphynx.program.interpret import evaluate
from sphynx.space.tally import Shape
from tests.compiler.frontend.test_onnx_operators import exported
from tests.compiler.frontend.torch_modules import IMAGE, Call, shuffle, with_statistics

pytestmark = pytest.mark.filterwarnings("ignore::Warning:torch")
MOST = 10  # rows and columns, so that a network stays small
Draw = Callable[[st.SearchStrategy[Any]], Any]


def convolution(draw: Draw, shape: Shape) -> nn.Module:
    rows, columns = draw(st.integers(1, min(3, shape.height))), draw(st.integers(1, min(3, shape.width)))
    groups = draw(st.sampled_from([n for n in (1, 2, shape.channels) if shape.channels % n == 0]))
    strides = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    padding = (draw(st.integers(0, 1)), draw(st.integers(0, 1)))
    outputs = groups * draw(st.integers(1, max(1, 4 // groups)))
    return nn.Conv2d(
        shape.channels, outputs, (rows, columns), strides, padding, groups=groups, bias=bool(draw(st.booleans()))
    )


def transposed(draw: Draw, shape: Shape) -> nn.Module:
    return nn.ConvTranspose2d(shape.channels, draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 2)))


def pool(draw: Draw, shape: Shape) -> nn.Module:
    kernel = (draw(st.integers(1, min(3, shape.height))), draw(st.integers(1, min(3, shape.width))))
    padding = tuple(draw(st.integers(0, k // 2)) for k in kernel)
    stride = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    if draw(st.booleans()):
        return nn.MaxPool2d(kernel, stride, padding, ceil_mode=bool(draw(st.booleans())))
    return nn.AvgPool2d(kernel, stride, padding, count_include_pad=bool(draw(st.booleans())))


def activation(draw: Draw, shape: Shape) -> nn.Module:
    kinds = [
        nn.ReLU(),
        nn.ReLU6(),
        nn.LeakyReLU(0.1),
        nn.PReLU(shape.channels),
        nn.Hardtanh(-0.5, 0.25),
        nn.Hardsigmoid(),
    ]
    return kinds[draw(st.integers(0, len(kinds) - 1))]


def resize(draw: Draw, shape: Shape) -> nn.Module:
    if max(shape.height, shape.width) > MOST // 2:
        return nn.AdaptiveAvgPool2d(1)
    return nn.Upsample(scale_factor=2, mode=("nearest", "bilinear")[draw(st.integers(0, 1))])


def move(draw: Draw, shape: Shape) -> nn.Module:
    moves: list[nn.Module] = [
        Call(lambda _, x: x.transpose(2, 3)),
        Call(lambda _, x: x[:, :, : max(1, x.shape[2] - 1), ::2]),
        Call(lambda _, x: torch.cat(x.chunk(2, 1)[::-1], 1) if x.shape[1] > 1 else x.flatten(2).unsqueeze(2)),
        Call(lambda _, x: functional.pad(x, (0, 1, 1, 0))),
        nn.ReplicationPad2d((1, 0, 0, 1)),
    ]
    if shape.channels % 4 == 0:
        moves.append(nn.PixelShuffle(2))
    if shape.channels % 2 == 0:
        moves.append(Call(shuffle))
    return moves[draw(st.integers(0, len(moves) - 1))]


def constant(draw: Draw, shape: Shape) -> nn.Module:
    if draw(st.booleans()):
        return nn.BatchNorm2d(shape.channels, affine=bool(draw(st.booleans())))
    return Call(lambda _, x: (2 - (x * 3 - 1) / 4) + torch.arange(float(x.shape[3]), dtype=x.dtype))


def joint(draw: Draw, shape: Shape) -> nn.Module:
    """A branch beside the map: added, subtracted, or joined to it."""
    branch = nn.Conv2d(shape.channels, shape.channels, 3, padding=1)
    return (
        Call(lambda m, x: m.branch(x) + x, branch=branch),
        Call(lambda m, x: x - torch.relu(m.branch(x)), branch=branch),
        Call(lambda m, x: torch.cat([m.branch(x), x], 1), branch=branch),
    )[draw(st.integers(0, 2))]


LAYERS = (convolution, convolution, transposed, pool, activation, activation, resize, move, constant, joint)


@st.composite
def networks(draw: Draw) -> nn.Module:
    torch.manual_seed(draw(st.integers(0, 1000)))
    layers: list[nn.Module] = []
    x = torch.zeros(1, *IMAGE)
    for _ in range(draw(st.integers(2, 5))):
        layer = LAYERS[draw(st.integers(0, len(LAYERS) - 1))](draw, Shape(*x.shape[1:])).eval()
        with torch.no_grad():
            made = layer(x)
        if max(made.shape[1:]) <= MOST and min(made.shape) > 0:
            layers.append(layer)
            x = made
    return with_statistics(nn.Sequential(*layers, nn.Flatten(), nn.Linear(x[0].numel(), 3))).double().eval()


def logits(network: OperatorNetwork, pixels: np.ndarray) -> Iterator[np.ndarray]:
    """Fused, cut at every joint, and cut and truncated (by no bits yet) at every joint."""
    mean, std = (0.0,) * 3, (1.0,) * 3
    joints = network.trace(mean, std, outline=True).joints
    for cuts in ((), joints, tuple(map(truncated_joint, joints))):
        fused = network.trace(mean, std, cuts=cuts)
        yield evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None).reshape(len(pixels), -1)


PADDING_ALONE = nn.Sequential(  # the convolution's outputs read nothing else
    nn.AdaptiveAvgPool2d(1),
    nn.Conv2d(IMAGE[0], 1, 1, stride=(1, 2), padding=(0, 1), bias=False),
    nn.Flatten(),
    nn.Linear(2, 3),
).double()

NORM_BEHIND_PAD = nn.Sequential(
    nn.ReplicationPad2d((1, 0, 0, 1)),
    nn.BatchNorm2d(IMAGE[0], affine=False),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(IMAGE[0], 3),
).double()


@settings(max_examples=3, suppress_health_check=list(HealthCheck))
@example(network=PADDING_ALONE)
@example(network=NORM_BEHIND_PAD.eval())
@given(network=networks())
def test_both_readers_equal_torch(network: nn.Module, tmp_path: Path) -> None:
    read_both_ways(network, tmp_path)


@pytest.mark.slow
@settings(max_examples=30, suppress_health_check=list(HealthCheck))
@given(network=networks())
def test_both_readers_equal_torch_on_many_networks(network: nn.Module, tmp_path: Path) -> None:
    read_both_ways(network, tmp_path)


def read_both_ways(network: nn.Module, tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (2, *IMAGE))
    with torch.no_grad():
        expected = network(torch.from_numpy(pixels / 255)).numpy()
    bound = 1e-9 * (1 + np.abs(expected).max())
    read = [read_module(network, Shape(*IMAGE))]
    try:
        read.append(read_network(exported(network, tmp_path / "network.onnx")))
    except SymbolicValueError as error:  # torch's exporter has lost the channels behind a pad
        if "batch_norm for unknown channel size" not in str(error):
            raise
    for found in read:
        assert all(np.abs(got - expected).max() < bound for got in logits(found, pixels))
