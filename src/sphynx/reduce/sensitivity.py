"""How much a network's answers change if a channel's ReLU becomes something else: the KL divergence, to second order.

For a change d of one channel's output, KL(p || p + dp) is about E (g . d)^2 / 2, where g is the gradient of -log p(y)
by that output and y is drawn from the network's own answer p (Fisher's information). One backward pass measures all
channels and all kinds at once, as if each alone were changed. The answers are softened as in distillation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.network.backend import fast_convolutions
from sphynx.reduce.parabola import fit_parabolas
from sphynx.reduce.task import Task
from sphynx.space.reduced import COEFFICIENTS, IDENTITY, RELU, REMOVED, SQUARE

Over = Literal["values", "channels", "layers"]
Sensitivity = dict[str, dict[str, Tensor]]  # of each layer, for each kind: one number for each value, channel or layer


def measure_sensitivity(
    task: Task, network: nn.Module, names: Mapping[str, str], kinds: tuple[str, ...], *, over: Over = "channels"
) -> Sensitivity:
    """`names` are the network's modules of the original's ReLU layers, `over` is what changes at once. Changes are from
    a ReLU, so its own is 0."""
    modules = dict(network.named_modules())
    found: Sensitivity = {}
    seen: dict[str, tuple[Tensor, Tensor]] = {}
    hooks = []
    for layer, name in names.items():

        def keep(_module: nn.Module, given: Any, made: Tensor, layer: str = layer) -> None:
            made.retain_grad()
            seen[layer] = given[0].detach(), made

        hooks.append(modules[name].register_forward_hook(keep))
    network.to(task.device).eval()
    generator = torch.Generator().manual_seed(task.seed)
    batches = task.batches(augmented=False)
    try:
        with fast_convolutions(task.device):
            for number, (x, _) in enumerate(batches):
                if number == task.settings.batches:
                    break
                logits = network(x.requires_grad_()).float() / task.recipe.distillation_temperature
                drawn = torch.multinomial(logits.detach().softmax(1).cpu(), 1, generator=generator)[:, 0]
                functional.cross_entropy(logits, drawn.to(logits.device), reduction="sum").backward()
                for layer, (z, y) in seen.items():
                    assert y.grad is not None
                    sums = found.setdefault(layer, {kind: torch.zeros(()) for kind in kinds})
                    for kind in kinds:
                        change = y.grad * (_activate(z, kind) - functional.relu(z))
                        sums[kind] = sums[kind] + _sum_over(change, over).square().sum(0).double().cpu()
    finally:
        for hook in hooks:
            hook.remove()
        network.zero_grad(set_to_none=True)
    return found


def _sum_over(change: Tensor, over: Over) -> Tensor:
    if over == "layers":
        return change.flatten(1).sum(1)
    return change.flatten(2).sum(2) if over == "channels" and change.ndim > 2 else change


def _activate(z: Tensor, kind: str) -> Tensor:
    if kind == RELU:
        return functional.relu(z)
    if kind == IDENTITY:
        return z
    if kind == REMOVED:
        return torch.zeros_like(z)
    assert kind == SQUARE
    a, b, c = fit_parabolas(z).view(COEFFICIENTS, 1, -1, *(1,) * (z.ndim - 2))
    parabola: Tensor = (a * z + b) * z + c
    return parabola
