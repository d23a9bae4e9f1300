"""The parabola next to a ReLU for the inputs that a channel really has: least squares from their moments."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.network.square import Square
from sphynx.reduce.task import Task
from sphynx.space.reduced import COEFFICIENTS

FITTED_IMAGES = 256
RIDGE = 1e-6  # of channels whose inputs hardly vary


def fit_parabolas(z: Tensor) -> Tensor:
    """a, b, c of each channel: those that minimise the mean of (a z^2 + b z + c - ReLU(z))^2 over images and pixels."""
    values = z.detach().flatten(2).transpose(0, 1).flatten(1).double() if z.ndim > 2 else z.detach().T.double()
    mean, deviation = values.mean(1, keepdim=True), values.std(1, keepdim=True).clamp_min(RIDGE)
    scores = (values - mean) / deviation
    powers = torch.stack([scores.square(), scores, torch.ones_like(scores)], 1)
    gram = powers @ powers.transpose(1, 2) / values.shape[1]
    gram = gram + RIDGE * torch.eye(COEFFICIENTS, dtype=gram.dtype, device=gram.device)
    right = (powers @ functional.relu(values)[:, :, None])[:, :, 0] / values.shape[1]
    a, b, c = torch.linalg.solve(gram, right).unbind(1)
    m, s = mean[:, 0], deviation[:, 0]
    return torch.stack([a / s**2, b / s - 2 * a * m / s**2, c - b * m / s + a * m**2 / s**2]).float()


def start_squares(task: Task, network: nn.Module, fresh: Mapping[str, Tensor]) -> None:
    """Fit the squares of these channels (a boolean for each, by the layer's name in the network) to images, in the
    order in which layers run: each meets what the squares before it make."""
    modules = dict(network.named_modules())
    hooks = []
    for name, channels in fresh.items():

        def fit(module: nn.Module, given: Any, channels: Tensor = channels) -> None:
            assert isinstance(module.square, Square)
            module.square.follow(fit_parabolas(given[0]), given[0], channels)

        hooks.append(modules[name].register_forward_pre_hook(fit))
    try:
        network.to(task.device).train()  # as it learns next: with statistics of batches
        with torch.no_grad():
            batches = task.batches(augmented=False)
            network(torch.cat([x for x, _ in islice(batches, -(-FITTED_IMAGES // batches.batch_size))]))
    finally:
        for hook in hooks:
            hook.remove()
