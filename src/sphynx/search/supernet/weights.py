"""The shared weights w of a supernet and the way they are trained: SGD, Nesterov momentum, cosine rate, clipped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from sphynx.search.captured import optimiser_tensors, use_rate
from sphynx.search.objective import Batch, CostTerm, Objective
from sphynx.search.recipe import SearchRecipe
from sphynx.search.supernet.cellspace import CellSpace, Kind
from sphynx.search.supernet.mixture import Mixtures
from sphynx.search.weight_steps import give_gradients, make_optimiser, memory_format


class MixedNetwork(Protocol):
    """The part of a supernet that a strategy needs."""

    space: CellSpace

    @property
    def cell_counts(self) -> dict[Kind, int]: ...

    def __call__(self, x: Tensor, mixtures: Mixtures) -> Tensor: ...

    def parameters(self) -> Iterable[nn.Parameter]: ...


class SharedWeights:
    def __init__(self, network: MixedNetwork, recipe: SearchRecipe, objective: Objective | None = None) -> None:
        self.network, self.recipe = network, recipe
        self.objective = objective or Objective()
        self.parameters = list(network.parameters())
        self.device = self.parameters[0].device
        self._half = bool(recipe.autocast) and self.device.type == "cuda"
        self.cost = CostTerm(self.objective, network.space, network.cell_counts, self.device)
        self.learning_rate = torch.tensor(recipe.learning_rate, device=self.device)
        self.optimiser = make_optimiser(recipe, self.parameters, self.learning_rate)

    def start_epoch(self, epoch: int) -> None:
        self.learning_rate.fill_(self.recipe.rate(epoch))

    def logits(self, x: Tensor, mixtures: Mixtures) -> Tensor:
        # The cache of casts would outlive the in-place changes of w that second-order DARTS makes.
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self._half, cache_enabled=False):
            return self.network(x.contiguous(memory_format=memory_format(self.recipe)), mixtures).float()

    def loss(self, batch: Batch, mixtures: Mixtures) -> Tensor:
        return self.objective.loss(self.logits(batch[0], mixtures), batch[1])

    def update(self, batch: Batch, mixtures: Mixtures) -> Tensor:
        """One step on w; the loss before it, left on the device."""
        loss = self.loss(batch, mixtures)
        # A single path leaves most weights without a gradient (None): they, and their momentum, stay as they are.
        give_gradients(self.parameters, torch.autograd.grad(loss, self.parameters, allow_unused=True))
        torch.nn.utils.clip_grad_norm_(self.parameters, self.recipe.gradient_clip)
        self.optimiser.step()
        return loss.detach()

    @torch.no_grad()
    def reward(self, batch: Batch, mixtures: Mixtures) -> Tensor:
        return self.objective.reward(self.logits(batch[0], mixtures), batch[1])

    def mean_reward(self, batches: Iterable[Batch], mixtures: Mixtures) -> float:
        """Over all batches, each weighted by its size."""
        total, count = torch.zeros((), device=self.device), 0
        for batch in batches:
            total += self.reward(batch, mixtures) * len(batch[0])
            count += len(batch[0])
        return float(total) / max(count, 1)

    def tensors(self) -> list[Tensor]:
        """The tensors that a step changes."""
        return [*self.parameters, *optimiser_tensors(self.optimiser)]

    def state_dict(self) -> dict[str, Any]:
        network: Any = self.network
        return {"network": network.state_dict(), "optimiser": self.optimiser.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        network: Any = self.network
        network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        use_rate(self.optimiser, self.learning_rate)
