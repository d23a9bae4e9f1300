"""The exponential moving average of a network's weights: a better network than the last step's, for nothing but memory.

    average <- average + (1 - d_t) (network - average)          d_t = min(decay, (1 + t) / (10 + t)), t = updates so far

d_t lets the first updates forget the random start. Batch norm's running statistics are averaged with the weights: they
describe the activations of the same past steps, weighted in the same way. Everything stays on the device in a few
multi-tensor kernels and reads t from a tensor, so that a captured step may hold it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from sphynx.network.build import AnyNetwork


class Average:
    """`network` is the average of `of`, ready to be evaluated."""

    def __init__(self, of: AnyNetwork, decay: float) -> None:
        self.network: AnyNetwork = copy.deepcopy(of).eval().requires_grad_(False)
        self.updates = torch.zeros((), device=next(of.parameters()).device)
        self._decay = decay
        pairs = list(zip(_state(self.network), _state(of), strict=True))
        self._means = [pair for pair in pairs if pair[0].is_floating_point()]
        self._counts = [pair for pair in pairs if not pair[0].is_floating_point()]  # batches seen: copied

    @torch.no_grad()
    def update(self) -> None:
        means, news = _columns(self._means)
        self.updates += 1
        rate = 1 - ((1 + self.updates) / (10 + self.updates)).clamp_max(self._decay)
        steps = torch._foreach_sub(news, means)
        torch._foreach_mul_(steps, rate)
        torch._foreach_add_(means, steps)
        if self._counts:
            torch._foreach_copy_(*_columns(self._counts))

    def tensors(self) -> list[Tensor]:
        """The tensors that an update changes."""
        return [*_state(self.network), self.updates]

    def state_dict(self) -> dict[str, Any]:
        return {"network": self.network.state_dict(), "updates": self.updates}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self.updates.copy_(state["updates"])


def _state(network: AnyNetwork) -> list[Tensor]:
    return [tensor.detach() for tensor in network.state_dict(keep_vars=True).values()]


def _columns(pairs: list[tuple[Tensor, Tensor]]) -> tuple[list[Tensor], list[Tensor]]:
    return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
