"""Allocation by learned gates: a network with too many rectified channels learns which of them it needs.

Every channel of a block has a gate g = sigmoid(score / tau) between a ReLU and the identity: y = z + g (ReLU(z) - z).
Weights learn from one half of the training images, scores from the other, with a penalty on what the open gates cost
beyond what is allowed at that time:

    loss + PENALTY max(0, sum of g cost / allowed - 1)          cost: h w of a channel's map, or its price in seconds

`allowed` falls linearly from all channels' cost to the budget in the first two thirds of the steps, and tau from 1 to
0.1 over all of them, which brings gates close to 0 or 1. At the end the channels with the highest scores are kept, as
many as the budget holds; each block's C is how many of its own are.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.network.stream import StreamBlock, StreamNetwork
from sphynx.search.allocation.candidates import Budget, with_channels
from sphynx.search.captured import use_rate
from sphynx.search.gumbel import linear
from sphynx.search.objective import Batch
from sphynx.search.weight_settings import WeightSettings
from sphynx.space.stream import StreamDesign

PENALTY = 10.0
GATE_RATE = 0.05
FIRST_SCORE = 1.0
TAU = (1.0, 0.1)
ANNEALED_BY = 2 / 3


class Gates(nn.Module):
    """In the place of a block's ReLU."""

    tau: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.scores = nn.Parameter(torch.full((channels,), FIRST_SCORE))
        self.register_buffer("tau", torch.ones(()))

    def values(self) -> Tensor:
        return torch.sigmoid(self.scores / self.tau)

    def forward(self, z: Tensor) -> Tensor:
        return z + self.values().to(z.dtype)[:, None, None] * (functional.relu(z) - z)


class GateSearch:
    """Learns scores for a design that is wider than the budget allows."""

    def __init__(
        self, design: StreamDesign, budget: Budget, recipe: WeightSettings, *, steps: int, device: torch.device | str
    ) -> None:
        self.design, self.budget, self.recipe, self.steps, self.done = design, budget, recipe, steps, 0
        self.network = StreamNetwork(design).to(device)
        self.gates: list[Gates] = []
        for block in self.network.modules():
            if isinstance(block, StreamBlock):
                self.gates.append(Gates(block.to_relus[0].out_channels).to(device))  # type: ignore[arg-type]
                block.to_relus[2] = self.gates[-1]
        self.costs = torch.tensor(budget.costs, device=device)
        self.scores = [gate.scores for gate in self.gates]
        ids = {id(score) for score in self.scores}
        self.weights = [parameter for parameter in self.network.parameters() if id(parameter) not in ids]
        self.learning_rate = torch.tensor(recipe.learning_rate, device=device)
        self.optimiser = recipe.optimiser(self.weights, self.learning_rate)
        self.gate_optimiser = torch.optim.Adam(self.scores, lr=GATE_RATE)
        self.half = bool(recipe.autocast) and torch.device(device).type == "cuda"
        self.device = torch.device(device)

    def start_epoch(self, epoch: int) -> None:
        self.learning_rate.fill_(self.recipe.rate(epoch))

    def step(self, train: Batch, held_out: Batch) -> Tensor:
        share = self.done / max(self.steps - 1, 1)
        for gate in self.gates:
            gate.tau.fill_(linear(*TAU, share))
        loss = self._loss(train)
        gradients = torch.autograd.grad(loss, self.weights)
        for weight, gradient in zip(self.weights, gradients, strict=True):
            weight.grad = gradient
        nn.utils.clip_grad_norm_(self.weights, self.recipe.gradient_clip)
        self.optimiser.step()
        allowed = linear(self.budget.spent(self.design), self.budget.total, min(1.0, share / ANNEALED_BY))
        total = self._loss(held_out) + PENALTY * functional.relu(self.spent() / allowed - 1)
        for score, gradient in zip(self.scores, torch.autograd.grad(total, self.scores), strict=True):
            score.grad = gradient
        self.gate_optimiser.step()
        self.done += 1
        return loss.detach()

    def spent(self) -> Tensor:
        """What the gates stand for now, in the budget's unit."""
        return (torch.stack([gate.values().sum() for gate in self.gates]) * self.costs).sum()

    def allocation(self) -> StreamDesign:
        """The channels of the highest scores, as many as the budget holds; at least one in each block."""
        scores = [score.detach().cpu().tolist() for score in self.scores]
        costs = self.budget.costs
        kept = [1] * len(scores)
        left = self.budget.total - sum(costs)
        ranked = sorted(
            ((score, block) for block, own in enumerate(scores) for score in sorted(own)[:-1]), reverse=True
        )  # the best of each block is in already
        for _, block in ranked:
            if costs[block] <= left:
                kept[block] += 1
                left -= costs[block]
        return with_channels(self.design, kept)

    def state_dict(self) -> dict[str, Any]:
        return {
            "network": self.network.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "gate_optimiser": self.gate_optimiser.state_dict(),
            "done": self.done,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        use_rate(self.optimiser, self.learning_rate)
        self.gate_optimiser.load_state_dict(state["gate_optimiser"])
        self.done = state["done"]

    def _loss(self, batch: Batch) -> Tensor:
        x, y = batch
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.half):
            logits = self.network(x.contiguous(memory_format=self.recipe.memory_format))
        return functional.cross_entropy(logits.float(), y)
