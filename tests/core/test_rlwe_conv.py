"""Packed convolutions end to end: the two shares sum to torch's integer convolution modulo 2^k."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sphynx.core import Prg, _native
from sphynx.core import rlwe as he
from sphynx.core.conv_shape import ConvShape
from sphynx.errors import InputError

pytest.importorskip("torch")
from tests.core.convolution_oracle import convolution, random_weights

Words = NDArray[np.uint64]
RINGS = (32, 39, 48, 64)
PARAMS = {bits: he.Params.for_ring(bits) for bits in RINGS}


def random_ring(rng: np.random.Generator, bits: int, *shape: int) -> Words:
    return rng.integers(0, 2**64, shape, np.uint64) & np.uint64(2**bits - 1)


def group_mask(shape: ConvShape) -> NDArray[np.int32]:
    """1 where a weight is between channels of one group."""
    outputs, inputs = (np.arange(n) // (n // shape.groups) for n in (shape.out_channels, shape.in_channels))
    mask: NDArray[np.int32] = (outputs[:, None] == inputs).astype(np.int32)[:, :, None, None]
    return mask


def check(bits: int, shapes: Sequence[ConvShape], seed: int = 0, **options: Any) -> None:
    params = PARAMS[bits]
    rng = np.random.default_rng(seed)
    plan = he.plan(params, *shapes, **options)
    images = plan.interleaved
    xs = [random_ring(rng, bits, images, s.in_channels, s.height, s.width) for s in shapes]
    ws = [random_weights(rng, shape) * group_mask(shape) for shape in shapes]
    client = he.LinearClient(params, Prg())
    server = he.LinearServer(params, client.public_key(), Prg())
    uploads = [client.encrypt(layout, x) for layout, x in zip(plan.layouts, xs, strict=True)]
    assert [len(u) for u in uploads] == [he.upload_bytes(params, layout) for layout in plan.layouts]
    pairs = list(zip(plan.layouts, uploads, strict=True))
    parsed = [server.parse(layout, upload, images) for layout, upload in pairs]
    if plan.is_grouped:
        parsed = [c for layout, upload in pairs for c in server.parse_apart(layout, upload, images)]
    prepared = he.PreparedConv(params, plan, ws)
    assert prepared.bytes == he.prepared_bytes(params, plan)
    reply, share = server.reply(prepared, parsed, images)
    assert len(reply) == he.reply_bytes(params, plan)
    total = (client.decrypt(plan, reply, images) + share) & np.uint64(2**bits - 1)
    for image in range(images):
        expected = sum(convolution(s, x[image], w, bits) for s, x, w in zip(shapes, xs, ws, strict=True))
        np.testing.assert_array_equal(total[image], np.asarray(expected) & np.uint64(2**bits - 1))


@st.composite
def conv_shapes(draw: st.DrawFn) -> ConvShape:
    stride, dilation = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    kernel_height, kernel_width = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    height, width = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    pad_top, pad_left = draw(st.integers(-1, 4)), draw(st.integers(-1, 4))
    pad_bottom, pad_right = draw(st.integers(-1, 4)), draw(st.integers(-1, 4))
    out_height = (height + pad_top + pad_bottom - dilation * (kernel_height - 1) - 1) // stride + 1
    out_width = (width + pad_left + pad_right - dilation * (kernel_width - 1) - 1) // stride + 1
    return ConvShape(
        draw(st.integers(1, 9)),
        height,
        width,
        draw(st.integers(1, 9)),
        kernel_height,
        kernel_width,
        max(1, out_height),
        max(1, out_width),
        stride,
        dilation,
        pad_top,
        pad_left,
    )


@settings(max_examples=30, deadline=None)
@given(shape=conv_shapes(), interleaved=st.sampled_from((2, 4, 8, 16)), seed=st.integers(0, 2**32))
def test_several_images_in_one_ciphertext(shape: ConvShape, interleaved: int, seed: int) -> None:
    """Every image's result is its own, for each number of images; groups and tiles included."""
    other = replace(shape, in_channels=3, kernel_height=1, kernel_width=1)
    check(39, [shape, other], seed, interleaved=interleaved)
    check(64, [replace(shape, in_channels=4, out_channels=6, groups=2)], seed, interleaved=interleaved)


def test_what_images_in_one_ciphertext_save() -> None:
    """A third of the ciphertexts in either direction, with as many products."""
    shape = ConvShape.square(64, (8, 8), 64, 3, padding=1)
    one, eight = (he.plan(PARAMS[32], shape, interleaved=images) for images in (1, 8))
    assert (one.uploads, one.replies, one.products) == (11, 8, 88)
    assert (eight.uploads, eight.replies, eight.products) == (8 * 4, 8 * 2.75, 8 * 88)
    with pytest.raises(InputError, match="12 images cannot share ciphertexts of 8"):
        eight.layouts[0].pack(np.zeros((12, 64, 8, 8), np.uint64))


@pytest.mark.parametrize(
    ("size", "channels", "degree"),
    [(7, 5, 64), (7, 512, 512), (14, 256, 1024), (16, 64, 16), (28, 128, 256), (56, 64, 1), (64, 8, 1)],
)
def test_weights_of_1x1_maps_lie_in_a_subring(size: int, channels: int, degree: int) -> None:
    """Their exponents are multiples of a channel's coefficients: what is not a power of two in these remains. Rows are
    filled up where that costs little."""
    plan = he.plan(PARAMS[32], ConvShape.square(channels, (size, size), 4 * channels, 1))
    assert plan.weight_degree == degree
    for stride in (1, 2):
        check(32, [ConvShape.square(5, (size, size), 9, 1, stride=stride)])
    assert he.plan(PARAMS[32], ConvShape.square(channels, (size, size), 9, 3, padding=1)).weight_degree == 4096


@settings(max_examples=30, deadline=None)
@given(shape=conv_shapes(), groups=st.integers(2, 9), wide=st.integers(1, 2), seed=st.integers(0, 2**32))
def test_grouped_convolutions(shape: ConvShape, groups: int, wide: int, seed: int) -> None:
    """Beside a term of one group; with tiles where the image is larger than a ciphertext."""
    grouped = replace(shape, in_channels=2 * groups, out_channels=wide * groups, groups=groups)
    check(39, [grouped, replace(grouped, in_channels=3, groups=1)], seed)
    check(39, [grouped], seed, channels_per_ciphertext=1)


@pytest.mark.parametrize("kind", [np.int8, np.int16])
def test_narrow_weights_are_those_that_they_stand_for(kind: type[np.signedinteger[Any]]) -> None:
    """The least of them too, whose negative is no number of its kind. What is not held reads the caller's own."""
    plan = he.plan(PARAMS[39], ConvShape.square(3, (6, 6), 5, 3, padding=1))
    least = np.iinfo(kind).min
    narrow = np.random.default_rng(0).integers(least, least + 3, (5, 3, 3, 3)).astype(kind)
    passing = he.PreparedConv(PARAMS[39], plan, [narrow], held=False, movable=True)
    assert not passing.is_held
    narrow[0] = least  # no copy was made
    values = []
    for prepared in (passing, he.PreparedConv(PARAMS[39], plan, [narrow.astype(np.int32)])):
        prepared.hold()
        values.append(bytearray(prepared.bytes))
        prepared.copy_values(values[-1], 0)
    assert values[0] == values[1]
    assert any(values[0])


def test_products_between_groups_are_left_out() -> None:
    dense = ConvShape.square(96, (16, 16), 96, 3, padding=1)
    plans = [he.plan(PARAMS[39], shape) for shape in (dense, replace(dense, groups=96))]
    assert plans[1].products < plans[0].products / 8
    check(39, [replace(dense, groups=96)])
    check(39, [replace(ConvShape.square(4, (90, 90), 4, 3, padding=1), groups=2)])
    weights = np.ones((96, 96, 3, 3), np.int32)
    with pytest.raises(InputError, match="two groups"):
        he.PreparedConv(PARAMS[39], plans[1], [weights])
    with pytest.raises(InputError, match="groups"):
        replace(dense, groups=5)


@settings(max_examples=120, deadline=None)
@given(bits=st.sampled_from(RINGS), shape=conv_shapes(), seed=st.integers(0, 2**32))
def test_any_convolution(bits: int, shape: ConvShape, seed: int) -> None:
    check(bits, [shape], seed)


@pytest.mark.parametrize("bits", RINGS)
@pytest.mark.parametrize(
    "shape",
    [
        ConvShape.square(80, (8, 8), 80, 3, padding=1),
        ConvShape.square(20, (16, 16), 12, 5, padding=4, dilation=2),
        ConvShape.square(5, (32, 32), 20, 3, stride=2, padding=1),
        ConvShape.square(3, (32, 32), 15, 3, padding=1),
        ConvShape.square(20, (16, 16), 80, 1),
        ConvShape.square(5, (31, 31), 20, 1, stride=2),
        ConvShape.dense(320, 100),
        ConvShape.dense(5000, 3),
    ],
    ids=lambda s: f"{s.in_channels}x{s.height}-{s.out_channels}-k{s.kernel_height}-s{s.stride}-d{s.dilation}",
)
def test_network_shapes(bits: int, shape: ConvShape) -> None:
    check(bits, [shape])


@pytest.mark.parametrize(
    "shape",
    [
        ConvShape.square(2, (64, 64), 3, 3, padding=1),
        ConvShape.square(3, (80, 72), 2, 5, padding=2),
        ConvShape.square(3, (130, 130), 2, 3, stride=2, padding=1),
        ConvShape.square(1, (3, 5000), 1, 3, padding=1),
    ],
)
def test_images_larger_than_a_ciphertext_are_tiled(shape: ConvShape) -> None:
    plan = he.plan(PARAMS[32], shape)
    assert plan.tiles > 1
    check(32, [shape])


@pytest.mark.parametrize(("height", "width"), [(1, 9), (9, 2), (1, 1), (3, 3)])
def test_phases_that_hold_nothing_are_not_sent(height: int, width: int) -> None:
    """A border of an image under a stride of 4, added to what the image itself gives."""
    border = ConvShape(6, height, width, 5, 5, 6, 3, 4, 4, 1, 4, 3)
    image = ConvShape(2, 12, 16, 5, 4, 4, 3, 4, 4)
    plan = he.plan(PARAMS[32], border, image)
    assert plan.layouts[0].virtual_channels == 6 * min(4, height) * min(4, width)
    check(32, [border, image])
    check(32, [border])
    nothing = ConvShape(2, 1, 1, 3, 1, 1, 2, 2, 2, 1, -1, 0)  # reads row 1 of one row
    check(32, [nothing])


@pytest.mark.parametrize("bits", RINGS)
def test_two_inputs_in_one_reply(bits: int) -> None:
    fused = ConvShape.square(6, (8, 8), 10, 9, padding=4)
    reducing = ConvShape.square(3, (16, 16), 10, 5, stride=2, padding=2)
    check(bits, [fused, reducing])
    tiled = [
        ConvShape.square(2, (66, 66), 3, 3, padding=1),
        ConvShape.square(1, (132, 132), 3, 3, stride=2, padding=1),
    ]
    check(bits, tiled)


def test_portable_path(path: str) -> None:
    assert (_native.rlwe.path() == "portable") == (path == "portable")
    check(39, [ConvShape.square(7, (9, 9), 5, 3, stride=2, padding=1)])


def test_two_layers_share_one_upload() -> None:
    params = PARAMS[32]
    small, large = ConvShape.square(8, (8, 8), 6, 3, padding=1), ConvShape.square(8, (8, 8), 9, 5, padding=2)
    wanted = he.plan(params, large, channels_per_ciphertext=4)
    pitch = wanted.layouts[0].row_pitch
    follower = he.plan(
        params,
        small,
        min_rows=wanted.layouts[0].block // pitch,
        min_row_pitch=pitch,
        channels_per_ciphertext=4,
    )
    assert follower.layouts == wanted.layouts
    check(32, [small], min_rows=wanted.layouts[0].block // pitch, min_row_pitch=pitch, channels_per_ciphertext=4)


def test_plan_counts() -> None:
    plan = he.plan(PARAMS[32], ConvShape.square(80, (8, 8), 80, 3, padding=1), channels_per_ciphertext=10)
    layout = plan.layouts[0]
    assert (layout.row_pitch, layout.block) == (9, 81)
    assert (plan.uploads, plan.outputs_per_reply, plan.replies, plan.products) == (8, 5, 16, 128)


def test_noise_bound_counts_every_output_of_a_reply() -> None:
    params = PARAMS[48]  # no prime is dropped, so the products' noise shows
    plan = he.plan(params, ConvShape.square(4, (8, 8), 8, 3, padding=1), channels_per_ciphertext=4)
    weights = np.full((8, 4, 3, 3), 100, np.int32)
    assert plan.outputs_per_reply == 8
    (bound,) = he.noise_bounds(params, plan, he.WeightNorms.of([weights]))
    assert bound.worst == pytest.approx(21.5 * 100 * 8 * 36 + 2 * 4096 * 21)


def test_wrong_shapes_are_refused() -> None:
    params = PARAMS[32]
    shape = ConvShape.square(4, (8, 8), 4, 3, padding=1)
    plan = he.plan(params, shape)
    client = he.LinearClient(params, Prg())
    with pytest.raises(InputError, match="shape"):
        client.encrypt(plan.layouts[0], np.zeros((4, 8, 9), np.uint64))
    with pytest.raises(InputError, match="weights"):
        he.PreparedConv(params, plan, [np.zeros((4, 4, 3, 1), np.int32)])
    with pytest.raises(InputError, match="outputs"):
        he.plan(params, shape, ConvShape.square(4, (8, 8), 5, 3, padding=1))
    with pytest.raises(InputError, match="at least 1"):
        ConvShape.square(0, (8, 8), 5, 3, padding=1)
    with pytest.raises(InputError, match="fit"):
        he.plan(params, shape, channels_per_ciphertext=1000)
