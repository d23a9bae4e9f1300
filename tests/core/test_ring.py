"""Ring convolution equals torch's integer convolution modulo 2^k on every path, and refuses wrong buffers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sphynx.core.conv_shape import ConvShape
from sphynx.core.ring import RingConv, ring_dtype
from sphynx.errors import InputError

pytest.importorskip("torch")
from tests.core.convolution_oracle import convolution, random_weights


def test_multiplications_are_those_of_pixels() -> None:
    """Each output of ones with ones counts its own multiplications."""
    for shape in (
        ConvShape.square(3, (7, 9), 2, 5, padding=2),
        replace(ConvShape.square(2, (4, 4), 3, 5, padding=4), dilation=2, out_height=4, out_width=4),
        ConvShape(1, 8, 8, 1, 3, 2, 4, 4, 2, 1, -1, 0),
    ):
        kernel = (shape.out_channels, shape.in_channels, shape.kernel_height, shape.kernel_width)
        image = np.ones((shape.in_channels, shape.height, shape.width), np.uint32)
        assert RingConv(shape, 32, np.ones(kernel, np.int32))(image, 1).sum() == shape.multiplications


@st.composite
def conv_shapes(draw: st.DrawFn) -> ConvShape:
    stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel_height, kernel_width = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    height, width = draw(st.integers(1, 14)), draw(st.integers(1, 14))
    out_height, out_width = draw(st.integers(1, 14)), draw(st.integers(1, 14))
    return ConvShape(
        draw(st.integers(1, 40)),
        height,
        width,
        draw(st.integers(1, 20)),
        kernel_height,
        kernel_width,
        out_height,
        out_width,
        stride,
        dilation,
        draw(st.integers(-2, 5)),
        draw(st.integers(-2, 5)),
    )


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    shape=conv_shapes(),
    bits=st.integers(1, 64),
    weight_bits=st.sampled_from([2, 8, 9, 12, 16]),
    seed=st.integers(0, 2**32),
    edge=st.booleans(),
    threads=st.integers(0, 3),
)
def test_any_convolution(
    path: str, shape: ConvShape, bits: int, weight_bits: int, seed: int, edge: bool, threads: int
) -> None:
    rng = np.random.default_rng(seed)
    tensor_shape = (shape.in_channels, shape.height, shape.width)
    if edge:  # 0, 1, -1, the two middle elements, and a byte pattern whose limbs all carry
        x = rng.choice(
            np.array([0, 1, 2**64 - 1, 2**63, 2**63 - 1, 2 ** (bits - 1), 0x8080808080808080], np.uint64),
            tensor_shape,
        )
    else:
        x = rng.integers(0, 2**64, tensor_shape, np.uint64)
    w = random_weights(rng, shape, weight_bits)
    conv = RingConv(shape, bits, w)
    assert (conv.native.path == "wide") == (path == "portable")
    expected = convolution(shape, x, w, bits)
    np.testing.assert_array_equal(conv(x, threads), expected)
    if bits <= 32:
        np.testing.assert_array_equal(conv(x.astype(np.uint32), threads), expected)


@pytest.mark.parametrize("bits", [32, 40, 64])
@pytest.mark.parametrize(
    "shape",
    [
        ConvShape.square(80, (8, 8), 80, 3, padding=1),
        ConvShape.square(5, (32, 32), 20, 5, stride=2, padding=2),
        ConvShape.dense(2000, 100),
    ],
    ids=str,
)
def test_network_shapes(path: str, shape: ConvShape, bits: int) -> None:
    assert path
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2**bits, (shape.in_channels, shape.height, shape.width), np.uint64, endpoint=False)
    w = random_weights(rng, shape)
    ring: Any = ring_dtype(bits)
    out = RingConv(shape, bits, w)(x.astype(ring))
    np.testing.assert_array_equal(out, convolution(shape, x, w, bits))


def test_a_convolution_without_weights_is_zero() -> None:
    shape = ConvShape.square(2, (4, 4), 3, 3, padding=1)
    out = RingConv(shape, 32, np.zeros((3, 2, 3, 3), np.int32))(np.ones((2, 4, 4), np.uint32))
    assert not out.any()


SHAPE = ConvShape.square(2, (4, 4), 3, 3, padding=1)
CONV = RingConv(SHAPE, 40, np.ones((3, 2, 3, 3), np.int32))


@pytest.mark.parametrize(
    ("tensor", "out"),
    [
        (np.ones(31, np.uint64), np.ones(48, np.uint64)),
        (np.ones(32, np.uint64), np.ones(47, np.uint64)),
        (np.ones(32, np.uint32), np.ones(48, np.uint32)),  # a 40-bit ring does not fit
        (np.ones(32, np.uint64), np.ones(48, np.uint32)),
        (np.ones(32, np.int64), np.ones(48, np.uint64)),
        (np.ones(32, np.float64), np.ones(48, np.float64)),
        (np.ones(64, np.uint64)[::2], np.ones(48, np.uint64)),
        (np.ones(32, np.uint64), np.ones(96, np.uint64)[::2]),
        (None, np.ones(48, np.uint64)),
        ([1] * 32, np.ones(48, np.uint64)),
    ],
)
def test_wrong_buffers(tensor: object, out: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        CONV.native.apply(tensor, out)  # type: ignore[call-overload]


def test_overlapping_or_readonly_buffers() -> None:
    memory = np.ones(80, np.uint64)
    with pytest.raises(ValueError, match="overlap"):
        CONV.native.apply(memory[:32], memory[31:79])
    memory.setflags(write=False)
    with pytest.raises((TypeError, ValueError)):
        CONV.native.apply(np.ones(32, np.uint64), memory[:48])


def test_wrong_shapes_and_weights() -> None:
    weights = np.ones((3, 2, 3, 3), np.int32)
    with pytest.raises(InputError, match="tensor"):
        CONV(np.ones((2, 4, 5), np.uint64))
    wrong: tuple[Any, ...] = (weights[:2], weights.astype(np.int64))
    for bad in wrong:
        with pytest.raises(InputError, match="weights"):
            RingConv(SHAPE, 40, bad)
    for bits in (0, 65, -3):
        with pytest.raises(ValueError):
            RingConv(SHAPE, bits, weights)
    with pytest.raises(ValueError, match="22 bits"):
        RingConv(SHAPE, 40, weights << 22)
    for huge in (
        replace(SHAPE, stride=2**17),
        replace(SHAPE, out_height=2**16, out_width=2**16),
        replace(SHAPE, pad_top=2**20),
    ):
        with pytest.raises(ValueError):
            RingConv(huge, 40, weights)
