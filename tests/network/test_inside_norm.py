"""Batch norm by the inside of a map: against torch's own where they must agree; its gradient against differences."""

import pytest
import torch
from torch import nn

from sphynx.network.inside_norm import InsideNorm
from sphynx.network.operations import BatchNorm


def twins(channels: int, margin: int, dtype: torch.dtype = torch.float64) -> tuple[InsideNorm, nn.BatchNorm2d]:
    torch.manual_seed(1)
    ours, theirs = InsideNorm(channels, margin).to(dtype), BatchNorm(channels, affine=True).to(dtype)
    with torch.no_grad():
        ours.weight.uniform_(0.5, 2)
        ours.bias.normal_()
    theirs.load_state_dict(ours.state_dict())
    return ours, theirs


@pytest.mark.parametrize("margin", [0, 1, 3])
def test_the_inside_is_what_torch_makes_of_the_inside_alone(margin: int) -> None:
    ours, theirs = twins(5, margin)
    x = 3 + 2 * torch.randn(4, 5, 7 + 2 * margin, 6 + 2 * margin, dtype=torch.float64)
    inside = x[:, :, margin : margin + 7, margin : margin + 6]
    y = ours(x)
    torch.testing.assert_close(y[:, :, margin : margin + 7, margin : margin + 6], theirs(inside))
    torch.testing.assert_close(ours.running_mean, theirs.running_mean)
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    # Outside the same map of each channel goes on.
    mean, var = inside.mean((0, 2, 3)), inside.var((0, 2, 3), correction=0)
    expected = nn.functional.batch_norm(x, mean, var, ours.weight, ours.bias, eps=ours.eps)
    torch.testing.assert_close(y, expected)
    ours.eval(), theirs.eval()
    torch.testing.assert_close(ours(x), theirs(x))


@pytest.mark.parametrize(("margin", "layout"), [(1, torch.contiguous_format), (2, torch.channels_last)])
def test_the_gradient_is_that_of_differences(margin: int, layout: torch.memory_format) -> None:
    norm, _ = twins(2, margin)
    x = torch.randn(2, 2, 3 + 2 * margin, 3 + 2 * margin, dtype=torch.float64).contiguous(memory_format=layout)

    def forward(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = torch.func.functional_call(norm, {"weight": weight, "bias": bias}, (x,))
        return y

    inputs = (x, norm.weight.detach().clone(), norm.bias.detach().clone())
    assert torch.autograd.gradcheck(forward, tuple(value.requires_grad_() for value in inputs))


def test_half_precision_maps_have_statistics_of_single_precision() -> None:
    norm, exact = twins(3, 1, torch.float32)
    x = (5 + torch.randn(8, 3, 10, 10)).bfloat16().requires_grad_()
    y = norm(x)
    assert y.dtype == torch.bfloat16
    exact(x.detach()[:, :, 1:9, 1:9].float())
    torch.testing.assert_close(norm.running_mean, exact.running_mean, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(norm.running_var, exact.running_var, rtol=1e-4, atol=1e-4)
    y.float().square().sum().backward()
    assert x.grad is not None and x.grad.dtype == torch.bfloat16 and norm.weight.grad is not None


def test_a_channel_without_spread_stays_finite() -> None:
    norm, _ = twins(1, 1, torch.float32)
    x = torch.full((2, 1, 6, 6), 1000.0, requires_grad=True)
    y = norm(x)
    y.sum().backward()
    assert torch.isfinite(y).all() and x.grad is not None and torch.isfinite(x.grad).all()


def test_a_small_spread_about_a_large_mean_is_seen() -> None:
    norm, exact = twins(2, 1, torch.float32)
    x = 3000 + torch.randn(8, 2, 10, 10)
    y, expected = norm(x)[:, :, 1:9, 1:9], exact(x[:, :, 1:9, 1:9])
    torch.testing.assert_close(y, expected, rtol=1e-2, atol=1e-2)
