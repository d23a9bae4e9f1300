"""Steps on network weights w: SGD by the settings, gradients and kernels in the layout of fused kernels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from sphynx.search.weight_settings import WeightSettings


def make_optimiser(settings: WeightSettings, weights: Iterable[nn.Parameter], rate: Tensor) -> torch.optim.SGD:
    """`rate` is a tensor on the weights' device, so that a captured step reads its present value."""
    optimiser = torch.optim.SGD(
        weights,
        lr=rate,
        momentum=settings.momentum,
        nesterov=settings.nesterov,
        weight_decay=settings.weight_decay,
        fused=rate.device.type == "cuda",
    )
    if settings.momentum:
        # A sampled path trains some weights later than others, and the fused kernel wants either all momenta or
        # none. Starting from zero is what the first step would do anyway.
        for weight in optimiser.param_groups[0]["params"]:
            optimiser.state[weight]["momentum_buffer"] = torch.zeros_like(weight)
    return optimiser


def memory_format(settings: WeightSettings) -> torch.memory_format:
    return torch.channels_last if settings.tensor_cores else torch.contiguous_format


def give_gradients(weights: Sequence[Tensor], gradients: Iterable[Tensor | None]) -> None:
    """Set each gradient in its weight's own layout, which the fused kernel needs: that of a slice comes contiguous."""
    for weight, gradient in zip(weights, gradients, strict=True):
        if gradient is not None and gradient.stride() != weight.stride():
            gradient = torch.empty_like(weight).copy_(gradient)
        weight.grad = gradient
