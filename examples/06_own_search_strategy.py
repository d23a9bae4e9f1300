"""A search strategy of your own: a bandit that keeps the mean reward of every operation on every edge.

The interface is `sphynx.search.strategies.strategy.Strategy`; the supernet, the data and the run's folder are Sphynx's.

python examples/06_own_search_strategy.py
"""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

import sphynx
from sphynx.search.objective import Batch
from sphynx.search.strategies.enas import usage
from sphynx.search.strategies.strategy import strongest
from sphynx.search.supernet.cellspace import KINDS, Kind
from sphynx.search.supernet.mixture import Mixtures, single_path
from sphynx.search.supernet.weights import SharedWeights

RATE, NOISE = 0.2, 0.1


class Bandit:
    name = "bandit"
    warmup_epochs = 0

    def __init__(self, shared: SharedWeights, generator: torch.Generator) -> None:
        self.shared, self.generator, self.space = shared, generator, shared.network.space
        shape = (len(self.space.edges), len(self.space.candidates))
        self.means: dict[Kind, Tensor] = {kind: torch.zeros(shape) for kind in KINDS}

    def start_epoch(self, epoch: int) -> None:
        del epoch  # nothing is scheduled

    def step(self, train: Batch, held_out: Batch) -> Tensor:
        """Draws a cell near the best one, trains its weights, and learns from its held-out accuracy."""
        noisy = {kind: m + NOISE * torch.randn(m.shape, generator=self.generator) for kind, m in self.means.items()}
        drawn = strongest(self.space, noisy, self.name)
        path = single_path(self.space, drawn)
        loss = self.shared.update(train, path)
        reward = self.shared.mean_reward([held_out], path)
        for kind, used in usage(self.space, [drawn]).items():
            self.means[kind] += RATE * used * (reward - self.means[kind])
        return loss

    def finish_epoch(self, held_out: Iterable[Batch], *, last: bool) -> None:
        del held_out, last  # everything is learned in the steps

    def strengths(self) -> dict[Kind, Tensor]:
        return self.means

    def genotype(self) -> sphynx.Genotype:
        return strongest(self.space, self.means, self.name)

    def mixtures(self) -> Mixtures:
        return single_path(self.space, self.genotype())

    def state_dict(self) -> dict[str, Any]:
        return {"means": self.means}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.means = dict(state["means"])


found = sphynx.search_cells(
    "digits", out="out/examples/search", strategy=Bandit, recipe="smoke", settings={"epochs": 4}, resume=True
)
print(f"{found.results[0].strategy}: held-out accuracy of the supernet {found.results[0].held_out_accuracy:.1%}")
for kind, cell in (("normal", found.chosen.normal), ("reduce", found.chosen.reduce)):
    print(f"{kind}: " + "; ".join(", ".join(f"{edge.operation} of {edge.source}" for edge in node) for node in cell))
design = sphynx.plan("1k", image=(1, 8, 8), classes=10, cells=found.chosen).design
print(f"a network of these cells: {design.relus:,} ReLUs, {design.parameters:,} parameters")
