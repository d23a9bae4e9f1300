"""GAEA (Li, Khodak, Balcan, Talwalkar 2021): mirror descent on the simplex itself, not on logits behind a softmax.

theta holds one probability vector per edge. Its exponentiated-gradient step, theta <- theta * exp(-eta grad) and then
normalised, suits the simplex's geometry and drives most entries towards 0, so less is lost when the cell is read off.
With partial channels (K > 1, GAEA PC-DARTS) the weights of the edges into each node are a simplex too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from sphynx.search.objective import Batch
from sphynx.search.strategies.darts import initial_parameter
from sphynx.search.strategies.pc_darts import softmax_per_node
from sphynx.search.strategies.strategy import strongest
from sphynx.search.supernet.cellspace import KINDS, Kind
from sphynx.search.supernet.mixture import Mixture, Mixtures
from sphynx.search.supernet.weights import SharedWeights
from sphynx.space.genotype import Genotype


class Gaea:
    name = "gaea"
    is_relaxed = True

    def __init__(self, shared: SharedWeights, generator: torch.Generator) -> None:
        self.shared, self.space = shared, shared.network.space
        recipe = shared.recipe
        self.rate = recipe.gaea_learning_rate
        self.warmup_epochs = int(recipe.warmup * recipe.epochs)
        self.epoch = 0

        def uniform(*shape: int) -> Tensor:
            return initial_parameter(shape, recipe.architecture_init, generator, shared.device).detach()

        edges = len(self.space.edges)
        self.theta: dict[Kind, Tensor] = {
            kind: uniform(edges, len(self.space.candidates)).softmax(dim=-1).requires_grad_() for kind in KINDS
        }
        self.edge_theta: dict[Kind, Tensor] = {}
        if recipe.gaea_channel_divisor > 1:
            self.edge_theta = {kind: softmax_per_node(self.space, uniform(edges)).requires_grad_() for kind in KINDS}

    def parameters(self) -> list[Tensor]:
        return [*self.theta.values(), *self.edge_theta.values()]

    def tensors(self) -> list[Tensor]:
        """The tensors that a step changes besides w."""
        return self.parameters()

    def start_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def mixtures(self) -> Mixtures:
        return {kind: Mixture(weights=self.theta[kind], edges=self.edge_theta.get(kind)) for kind in KINDS}

    def held_out_loss(self, batch: Batch) -> Tensor:
        loss = self.shared.loss(batch, self.mixtures())
        return loss + self.shared.cost.of(self.theta) if self.shared.cost else loss

    def step(self, train: Batch, held_out: Batch) -> Tensor:
        if self.epoch >= self.warmup_epochs:
            gradients = torch.autograd.grad(self.held_out_loss(held_out), self.parameters(), allow_unused=True)
            with torch.no_grad():
                for theta, gradient in zip(self.parameters(), gradients, strict=True):
                    if gradient is not None:
                        theta.copy_(self._exponentiate(theta, gradient))
        return self.shared.update(train, self.mixtures())

    def _exponentiate(self, theta: Tensor, gradient: Tensor) -> Tensor:
        """The softmax of the logarithm is the normalisation; an entry that has reached 0 stays there."""
        logits = theta.log() - self.rate * gradient
        return logits.softmax(dim=-1) if theta.dim() == 2 else softmax_per_node(self.space, logits)

    def finish_epoch(self, held_out: Iterable[Batch], *, last: bool) -> None:
        del held_out, last  # everything is learned in the steps

    def strengths(self) -> dict[Kind, Tensor]:
        with torch.no_grad():
            return {
                kind: self.theta[kind] * self.edge_theta[kind][:, None] if self.edge_theta else self.theta[kind].clone()
                for kind in KINDS
            }

    def genotype(self) -> Genotype:
        return strongest(self.space, self.strengths(), self.name)

    def state_dict(self) -> dict[str, Any]:
        return {"theta": [theta.detach() for theta in self.parameters()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        with torch.no_grad():
            for theta, saved in zip(self.parameters(), state["theta"], strict=True):
                theta.copy_(saved)
