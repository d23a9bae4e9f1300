"""Maps of one row or one column, on both sides of every size at which their form changes: numpy's buffer of 8,192
elements, as many channels as are multiplied at once, one polynomial. Moved elements are where numpy says; networks that
pad them by a layer of its own equal torch, in doubles."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from sphynx.compiler.frontend.export.module import read_module
from sphynx.compiler.frontend.operators.value import Order, Value
from sphynx.compiler.fusion.fuse import Fuser, truncated_joint
from sphynx.program.interpret import evaluate
from sphynx.program.ir import INPUT, NOTHING
from sphynx.space.tally import Shape

BUFFER = 8192  # elements that numpy's iterators take at once
SIZES = st.sampled_from([1, 2, 3, 31, 32, 33, 64, 127, 128, 4095, 4096, 4097, BUFFER - 1, BUFFER, BUFFER + 1])


@st.composite
def thin_shapes(draw: st.DrawFn) -> Shape:
    """One axis of a single position, or two; of about as many elements as a buffer, or far fewer."""
    axes = draw(st.permutations((0, 1, 2)))
    length = draw(SIZES)
    other = draw(st.sampled_from([1, 2, max(1, BUFFER // length), BUFFER // length + 1]))
    lengths = {axes[0]: 1, axes[1]: length, axes[2]: other}
    return Shape(*(lengths[axis] for axis in range(3)))


@st.composite
def moves(draw: st.DrawFn) -> tuple[Shape, Order]:
    shape = draw(thin_shapes())
    pads = [(draw(st.integers(0, 2)), draw(st.integers(0, 2))) for _ in range(3)]
    order = np.pad(np.arange(shape.size).reshape(shape), pads, constant_values=NOTHING)
    if draw(st.booleans()):
        order = np.flip(order, draw(st.integers(0, 2)))
    if max(shape.height, shape.width) < 200 and draw(st.booleans()):  # each row that becomes a column is a sum's part
        order = order.swapaxes(1, 2)
    return shape, order[:, draw(st.integers(0, order.shape[1] - 1)) // 2 :, :: draw(st.integers(1, 2))]


@settings(max_examples=60)
@given(move=moves())
def test_moved_elements_are_where_numpy_says(move: tuple[Shape, Order]) -> None:
    shape, order = move
    pixels = np.random.default_rng(0).integers(1, 256, (1, *shape)).astype(np.float64)
    fuser = Fuser(shape, (0.0,) * shape.channels, (1.0,) * shape.channels)
    settled = Value.of_map(fuser.tensor(INPUT)).moved(order).settled(fuser, "moved")
    fused = fuser.finish(settled.node, "out")
    got = evaluate(fused.graph, fused.weights, pixels, lambda *_: None)
    expected = np.where(order == NOTHING, 0, pixels.reshape(-1)[order])
    assert np.array_equal(got.reshape(order.shape), expected)


def turned(pair: tuple[int, int], is_row: bool) -> tuple[int, int]:
    """Along the rows of a map of one column, or the columns of one of one row."""
    return pair[::-1] if is_row else pair


def padded_network(channels: int, length: int, is_row: bool) -> nn.Module:
    pads = (1, 2, 0, 0) if is_row else (0, 0, 1, 2)
    torch.manual_seed(0)
    layers = nn.Sequential(
        nn.Conv2d(1, channels, turned((3, 1), is_row)),
        nn.ReLU(),
        nn.ZeroPad2d(pads),
        nn.Conv2d(channels, 3, turned((4, 1), is_row), stride=turned((3, 1), is_row)),
        nn.ZeroPad2d(pads),
        nn.MaxPool2d(turned((2, 1), is_row)),
        nn.ReplicationPad2d(pads),
        nn.Conv2d(3, 2, turned((3, 1), is_row)),
        nn.Flatten(),
    )
    image = torch.zeros(1, 1, *turned((length, 1), is_row))
    with torch.no_grad():
        made = layers(image).shape[1]
    return nn.Sequential(*layers, nn.Linear(made, 4)).double().eval()


@pytest.mark.parametrize("is_row", [False, True], ids=["one column", "one row"])
@pytest.mark.parametrize(
    ("channels", "length"),
    [(128, 62), (128, 66), (32, 250), (33, 260), (1, 4100), (2, 8200)],
)
def test_networks_that_pad_thin_maps_equal_torch(channels: int, length: int, is_row: bool) -> None:
    network = padded_network(channels, length, is_row)
    image = Shape(1, *turned((length, 1), is_row))
    pixels = np.random.default_rng(0).integers(0, 256, (2, *image))
    with torch.no_grad():
        expected = network(torch.from_numpy(pixels / 255)).numpy()
    read = read_module(network, image)
    joints = read.trace((0.0,), (1.0,), outline=True).joints
    for cuts in ((), joints, tuple(map(truncated_joint, joints))):
        fused = read.trace((0.0,), (1.0,), cuts=cuts)
        got = evaluate(fused.graph, fused.weights, pixels.astype(np.float64), lambda *_: None)
        assert np.abs(got.reshape(expected.shape) - expected).max() < 1e-9 * (1 + np.abs(expected).max())
