"""Batch norm whose statistics are of the inside of a map and which is applied to all of it, the halo too.

    y_j = gamma (x_j - mu) r + beta          mu, r = 1 / sqrt(var + eps) over the n values of a channel that lie inside

For j outside, dx_j = gamma r dy_j. For j inside, with x^ = (x - mu) r and the sums over the whole map,

    dx_j = gamma r [dy_j - (sum dy) / n - x^_j (sum dy x^) / n]

sum dy and sum dy x^ are the gradients of beta and gamma, and gamma r dy is what batch norm with fixed statistics passes
on: one kernel gives all three, and the inside is corrected after it. Nothing is read back to the host, so that a CUDA
graph can hold it. Statistics of half-precision maps are taken in single precision, and about the mean: the mean of
squares less the square of the mean would lose a variance that is small beside it. As with `operations.BatchNorm`, each
of several processes has statistics of its own.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from sphynx.network.operations import BatchNorm

_ALL_BUT_CHANNELS = (0, 2, 3)


class InsideNorm(BatchNorm):
    """`margin`: how many pixels of a map lie outside, on each of its sides."""

    def __init__(self, channels: int, margin: int) -> None:
        super().__init__(channels, affine=True)
        self.margin = margin

    def forward(self, x: Tensor) -> Tensor:
        if not self.training or self.margin == 0:
            return super().forward(x)
        mean, variance = inside_statistics(x, self.margin)
        assert self.running_mean is not None and self.running_var is not None and self.momentum is not None
        with torch.no_grad():
            count = _inside(x, self.margin).numel() // x.shape[1]
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), self.momentum)
            self.running_var.lerp_(variance.to(self.running_var.dtype) * (count / max(count - 1, 1)), self.momentum)
        y: Tensor = _Normalise.apply(x, self.weight, self.bias, mean, variance, self.margin, self.eps)  # type: ignore[no-untyped-call]  # torch's
        return y


@torch.no_grad()
def inside_statistics(x: Tensor, margin: int) -> tuple[Tensor, Tensor]:
    """Mean and (biased) variance of each channel."""
    precise = _inside(x, margin).to(torch.promote_types(x.dtype, torch.float32))
    variance, mean = torch.var_mean(precise, _ALL_BUT_CHANNELS, correction=0)
    return mean, variance


class _Normalise(torch.autograd.Function):
    """Mean and variance are given, and yet functions of x: the gradient goes through them."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, mean: Tensor, variance: Tensor, margin: int, eps: float
    ) -> Tensor:
        ctx.save_for_backward(x, weight, mean, variance)
        ctx.margin, ctx.eps = margin, eps
        return functional.batch_norm(x, mean, variance, weight, bias, False, 0.0, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        x, weight, mean, variance = ctx.saved_tensors
        factor = (variance + ctx.eps).rsqrt()
        of_x, of_weight, of_bias = torch.ops.aten.native_batch_norm_backward(
            gradients[0], x, weight, mean, variance, mean, factor, False, ctx.eps, [True, True, True]
        )
        inside, inside_x = _inside(of_x, ctx.margin), _inside(x, ctx.margin)
        count = inside.numel() // x.shape[1]
        slope = weight * factor.square() * of_weight / count
        constant = weight * factor * of_bias / count - slope * mean
        inside.sub_(torch.addcmul(_by_channel(constant), _by_channel(slope), inside_x))
        return of_x, of_weight, of_bias, None, None, None, None


def _inside(x: Tensor, margin: int) -> Tensor:
    return x[:, :, margin : x.shape[2] - margin, margin : x.shape[3] - margin]


def _by_channel(values: Tensor) -> Tensor:
    return values[:, None, None]
