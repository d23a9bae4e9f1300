"""Allocation by learned gates: a network with too many rectified channels learns which of them it needs.

Every channel of a block has a gate g = sigmoid(score / tau) between a ReLU and the identity: y = z + g (ReLU(z) - z).
Weights learn from one half of the training images, scores from the other, with a penalty on what the open gates cost
beyond what is allowed at that time:

    loss + PENALTY max(0, sum of g cost / allowed - 1)          cost: h w of a channel's map, or its price in seconds

`allowed` falls linearly from all channels' cost to the budget in the first two thirds of the steps, and tau from 1 to
0.1 over all of them, which brings gates close to 0 or 1. At the end the channels with the highest scores are kept, as
many as the budget holds; each block's C is how many of its own are. On a GPU both steps are captured as graphs, which
is why tau and what is allowed are tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.network.layout import lay_out
from sphynx.network.stream import StreamBlock, StreamNetwork
from sphynx.search.allocation.candidates import Budget, allocated, with_channels
from sphynx.search.captured import Captures, optimiser_tensors, use_rate
from sphynx.search.gumbel import linear
from sphynx.search.objective import Batch, TaughtLoss
from sphynx.search.placement.recipe import PlacementRecipe
from sphynx.search.weight_steps import give_gradients, make_optimiser, memory_format
from sphynx.space.stream import StreamDesign

PENALTY = 10.0
GATE_RATE = 0.05
FIRST_SCORE = 1.0
TAU = (1.0, 0.1)
ANNEALED_BY = 2 / 3


class Gates(nn.Module):
    """A gate per channel, in the place of a block's ReLU."""

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
    """Learns scores for a design that is wider than the budget allows. `loss`: of logits and a batch's other parts."""

    def __init__(
        self,
        design: StreamDesign,
        budget: Budget,
        recipe: PlacementRecipe,
        *,
        steps: int,
        device: torch.device | str,
        loss: TaughtLoss = functional.cross_entropy,
    ) -> None:
        self.design, self.budget, self.recipe = design, budget, recipe
        self.steps, self.done, self.epoch = steps, 0, 0
        self.device, self.loss = torch.device(device), loss
        self.network = StreamNetwork(design).to(device)
        self.gates: list[Gates] = []
        for block in self.network.modules():
            if isinstance(block, StreamBlock):
                self.gates.append(Gates(block.to_relus[0].out_channels).to(device))  # type: ignore[arg-type]  # of a convolution
                block.to_relus[2] = self.gates[-1]
        lay_out(self.network, memory_format(recipe))
        self.costs = torch.tensor(budget.costs, device=device)
        self.allowed = torch.tensor(budget.spent(design), device=device)
        self.scores = [gate.scores for gate in self.gates]
        ids = {id(score) for score in self.scores}
        self.weights = [parameter for parameter in self.network.parameters() if id(parameter) not in ids]
        self.learning_rate = torch.tensor(recipe.learning_rate, device=device)
        self.optimiser = make_optimiser(recipe, self.weights, self.learning_rate)
        on_gpu = self.device.type == "cuda"
        self.gate_optimiser = torch.optim.Adam(self.scores, lr=GATE_RATE, capturable=on_gpu)
        self._half = bool(recipe.autocast) and on_gpu
        self._captures = Captures(bool(recipe.cuda_graphs) and on_gpu)

    def start_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def step(self, train: tuple[Tensor, ...], held_out: Batch) -> Tensor:
        self.learning_rate.fill_(self.recipe.warmed(self.epoch, self.done, self.steps))
        share = self.done / max(self.steps - 1, 1)
        for gate in self.gates:
            gate.tau.fill_(linear(*TAU, share))
        whole = self.budget.spent(self.design)
        self.allowed.fill_(linear(whole, self.budget.total, min(1.0, share / ANNEALED_BY)))
        self.done += 1
        return self._captures.run("step", self._step, [*held_out, *train], self._tensors)

    def _step(self, held_out: Tensor, labels: Tensor, x: Tensor, *targets: Tensor) -> Tensor:
        loss = self.loss(self._logits(x), *targets)
        give_gradients(self.weights, torch.autograd.grad(loss, self.weights))
        nn.utils.clip_grad_norm_(self.weights, self.recipe.gradient_clip)
        self.optimiser.step()
        beyond = functional.relu(self.spent() / self.allowed - 1)
        total = functional.cross_entropy(self._logits(held_out), labels) + PENALTY * beyond
        give_gradients(self.scores, torch.autograd.grad(total, self.scores))
        self.gate_optimiser.step()
        return loss.detach()

    def _tensors(self) -> list[Tensor]:
        """The tensors that a step changes."""
        optimisers = optimiser_tensors(self.optimiser, self.gate_optimiser)
        return [*self.network.parameters(), *self.network.buffers(), *optimisers]

    def spent(self) -> Tensor:
        """The cost of the gates as they are now, in the budget's unit."""
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
        if self.budget.multiple == 1:
            return with_channels(self.design, kept)
        return allocated(self.design, [C * cost for C, cost in zip(kept, costs, strict=True)], self.budget)

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

    def _logits(self, x: Tensor) -> Tensor:
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._half, cache_enabled=False):
            return self.network(x.contiguous(memory_format=memory_format(self.recipe))).float()
