"""Random search with weight sharing (Li and Talwalkar 2019): the baseline that a search has to beat.

Each batch trains w through one cell drawn uniformly. At the end many random cells are scored with the shared weights on
one held-out batch and the best few on the whole held-out half. (`ranking` retrains random cells instead.)
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from sphynx.search.objective import Batch, CostTerm
from sphynx.search.strategies.enas import usage
from sphynx.search.supernet.cellspace import Kind
from sphynx.search.supernet.mixture import Mixtures, single_path
from sphynx.search.supernet.weights import SharedWeights
from sphynx.space.genotype import Genotype

EARLY_SHARE = 0.1  # of the candidates are scored in epochs before the last, for the record


class RandomSearch:
    name = "random"
    warmup_epochs = 0  # no epoch differs from the others

    def __init__(self, shared: SharedWeights, generator: torch.Generator) -> None:
        self.shared, self.generator = shared, generator
        self.space = shared.network.space
        self.cost = CostTerm(shared.objective, self.space, shared.network.cell_counts, torch.device("cpu"))
        self.best = self._draw()

    def start_epoch(self, epoch: int) -> None:
        del epoch  # nothing is scheduled

    def _draw(self) -> Genotype:
        seed = int(torch.randint(2**31, (), generator=self.generator))
        return self.space.random_genotype(random.Random(seed))

    def step(self, train: Batch, held_out: Batch) -> Tensor:
        del held_out
        return self.shared.update(train, single_path(self.space, self._draw()))

    def finish_epoch(self, held_out: Iterable[Batch], *, last: bool) -> None:
        batches = list(held_out)
        if not batches:
            return
        recipe = self.shared.recipe
        count = recipe.random_candidates if last else max(1, int(EARLY_SHARE * recipe.random_candidates))
        ranked = self._rank([self._draw() for _ in range(count)], batches[:1])
        self.best = self._rank(ranked[: recipe.random_finalists], batches)[0] if last else ranked[0]

    def _rank(self, candidates: list[Genotype], batches: list[Batch]) -> list[Genotype]:
        scores = {}
        for number, genotype in enumerate(candidates):
            scores[number] = self.shared.mean_reward(batches, single_path(self.space, genotype))
            if self.cost:
                scores[number] -= float(self.cost.of(usage(self.space, [genotype])))
        return [candidates[number] for number in sorted(scores, key=lambda n: (-scores[n], n))]

    def strengths(self) -> dict[Kind, Tensor]:
        """Show the best cell so far: this strategy learns nothing else."""
        return usage(self.space, [self.best])

    def genotype(self) -> Genotype:
        return self.best

    def mixtures(self) -> Mixtures:
        return single_path(self.space, self.best)

    def state_dict(self) -> dict[str, Any]:
        return {"best": self.best.to_json()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.best = Genotype.from_json(state["best"])
