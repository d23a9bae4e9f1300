"""Small convolutions as matrix products against torch's own: values, gradients and second derivatives."""

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from sphynx.network import small_maps
from sphynx.network.small_maps import SmallMaps, Taps


@settings(deadline=None, max_examples=20)
@given(
    size=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    kernel=st.sampled_from([1, 2, 3, 5]),
    stride=st.integers(1, 2),
    dilation=st.integers(1, 2),
    extra=st.integers(0, 2),
    groups=st.integers(1, 3),
    seed=st.integers(0, 2**31),
)
def test_values_and_gradients_are_torchs(
    size: tuple[int, int], kernel: int, stride: int, dilation: int, extra: int, groups: int, seed: int
) -> None:
    padding = dilation * (kernel // 2) + extra
    if any(length + 2 * padding < dilation * (kernel - 1) + 1 for length in size):
        return
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(3, 2 * groups, *size, generator=generator, dtype=torch.float64, requires_grad=True)
    w = torch.randn(4 * groups, 2, kernel, kernel, generator=generator, dtype=torch.float64, requires_grad=True)
    plain = functional.conv2d(x, w, None, stride, padding, dilation, groups)
    rows, columns = (Taps.of(length, kernel, stride, padding, dilation) for length in size)
    apply: Callable[..., Tensor] = small_maps._MatrixConvolution.apply
    ours = apply(x, w, rows, columns, (stride, padding, dilation), groups)
    torch.testing.assert_close(ours, plain)
    upstream = torch.randn(plain.shape, generator=generator, dtype=torch.float64)
    for mine, theirs in zip(*(torch.autograd.grad(y, (x, w), upstream) for y in (ours, plain)), strict=True):
        torch.testing.assert_close(mine, theirs)


def test_second_derivatives_are_torchs() -> None:
    generator = torch.Generator().manual_seed(0)
    x, w = (
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((2, 16, 2, 2), (4, 16, 5, 5))
    )

    def curvature() -> tuple[Tensor, ...]:
        y = functional.conv2d(x, w, padding=2)
        first = torch.autograd.grad(y.pow(3).sum(), (x, w), create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), (x, w))  # type: ignore[arg-type]

    plain = curvature()
    with SmallMaps():
        ours = curvature()
    for mine, theirs in zip(ours, plain, strict=True):
        torch.testing.assert_close(mine, theirs)


@pytest.mark.parametrize(("size", "channels", "taken"), [(2, 16, True), (2, 2, True), (4, 2, False), (9, 16, False)])
def test_what_gains_goes_as_a_product_and_nothing_else_changes(size: int, channels: int, taken: bool) -> None:
    x, w = torch.randn(2, channels, size, size), torch.randn(3, channels, 5, 5, requires_grad=True)
    with SmallMaps():
        name = type(functional.conv2d(x, w, padding=2).grad_fn).__name__
        with torch.no_grad():
            assert torch.equal(functional.conv2d(x, w, padding=2), torch.conv2d(x, w, padding=2))
        # A bias is left to torch.
        assert "Matrix" not in type(functional.conv2d(x, w, torch.zeros(3), padding=2).grad_fn).__name__
    assert ("Matrix" in name) == taken


def test_taps_that_meet_no_pixel_are_left_out() -> None:
    assert Taps.of(2, 5, 1, 2, 1) == Taps(first=1, count=3, low=1, high=1, outputs=2)
    assert Taps.of(2, 5, 1, 4, 2) == Taps(first=2, count=1, low=0, high=0, outputs=2)
    assert Taps.of(8, 5, 1, 2, 1).count == 5
