"""GDAS (Dong and Yang 2019): one operation per edge, drawn per batch by Gumbel-max with a straight-through gradient.

Only the drawn operations are computed, so a step costs about what one network costs; temperature tau falls linearly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from sphynx.search.gumbel import HardSample, gumbel_max, linear
from sphynx.search.objective import Batch, CostTerm
from sphynx.search.strategies.darts import initial_parameter
from sphynx.search.strategies.strategy import strongest
from sphynx.search.supernet.cellspace import KINDS, Kind
from sphynx.search.supernet.mixture import Mixture, Mixtures, single_path
from sphynx.search.supernet.weights import SharedWeights
from sphynx.space.genotype import Genotype

HOST = torch.device("cpu")


class Gdas:
    name = "gdas"

    def __init__(self, shared: SharedWeights, generator: torch.Generator) -> None:
        self.shared, self.generator = shared, generator
        self.space = shared.network.space
        recipe = shared.recipe
        self.warmup_epochs = int(recipe.warmup * recipe.epochs)
        shape = (len(self.space.edges), len(self.space.candidates))
        self.alpha: dict[Kind, nn.Parameter] = {
            kind: initial_parameter(shape, recipe.architecture_init, generator, HOST) for kind in KINDS
        }
        self.optimiser = torch.optim.Adam(
            list(self.alpha.values()),
            lr=recipe.architecture_learning_rate,
            betas=(recipe.architecture_betas[0], recipe.architecture_betas[1]),
            weight_decay=recipe.architecture_weight_decay,
        )
        self.cost = CostTerm(shared.objective, self.space, shared.network.cell_counts, HOST)
        self.epoch, self.tau = 0, recipe.gdas_tau_start

    def start_epoch(self, epoch: int) -> None:
        recipe = self.shared.recipe
        self.epoch = epoch
        self.tau = linear(recipe.gdas_tau_start, recipe.gdas_tau_end, epoch / max(recipe.epochs - 1, 1))

    def _sample(self) -> dict[Kind, HardSample]:
        return {kind: gumbel_max(alpha, self.tau, self.generator) for kind, alpha in self.alpha.items()}

    def _architecture_step(self, batch: Batch) -> None:
        samples = self._sample()
        gates = {
            kind: torch.ones(len(alpha), device=self.shared.device, requires_grad=True)
            for kind, alpha in self.alpha.items()
        }
        mixtures = {kind: Mixture(paths=_paths(samples[kind]), edges=gates[kind]) for kind in KINDS}
        loss = self.shared.loss(batch, mixtures)
        # A kind of cell has no gradient where zero was drawn on all its edges, or where there is no such cell.
        gradients = torch.autograd.grad(loss, [gates[kind] for kind in KINDS], allow_unused=True)
        self.optimiser.zero_grad()
        if self.cost:
            self.cost.of({kind: alpha.softmax(dim=-1) for kind, alpha in self.alpha.items()}).backward()
        for kind, gradient in zip(KINDS, gradients, strict=True):
            if gradient is not None:
                samples[kind].soft.backward(gradient.to(HOST))
        self.optimiser.step()

    def step(self, train: Batch, held_out: Batch) -> Tensor:
        if self.epoch >= self.warmup_epochs:
            self._architecture_step(held_out)
        with torch.no_grad():
            samples = self._sample()
        return self.shared.update(train, {kind: Mixture(paths=_paths(samples[kind])) for kind in KINDS})

    def finish_epoch(self, held_out: Iterable[Batch], *, last: bool) -> None:
        del held_out, last  # everything is learned in the steps

    def strengths(self) -> dict[Kind, Tensor]:
        return {kind: alpha.detach().softmax(dim=-1) for kind, alpha in self.alpha.items()}

    def genotype(self) -> Genotype:
        return strongest(self.space, self.strengths(), self.name)

    def mixtures(self) -> Mixtures:
        return single_path(self.space, self.genotype())

    def state_dict(self) -> dict[str, Any]:
        return {
            "alpha": {kind: alpha.detach() for kind, alpha in self.alpha.items()},
            "optimiser": self.optimiser.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        with torch.no_grad():
            for kind, alpha in self.alpha.items():
                alpha.copy_(state["alpha"][kind])
        self.optimiser.load_state_dict(state["optimiser"])


def _paths(sample: HardSample) -> tuple[tuple[int, ...], ...]:
    return tuple((column,) for column in sample.chosen)
