"""ENAS (Pham et al. 2018), micro search: an LSTM controller samples cells, REINFORCE teaches it from their rewards.

One pass over the training half trains w, a new sample for each batch; then one pass over the held-out half trains the
controller, whose reward is the sampled network's held-out accuracy with the shared weights (less the price of its
operations, where one is set). A moving average is the baseline; a bonus on entropy keeps it exploring. The returned
cell is the best of a few samples on held-out data. The controller is small and stays on the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from sphynx.search.objective import Batch, CostTerm
from sphynx.search.recipe import SearchRecipe
from sphynx.search.supernet.cellspace import KINDS, CellSpace, Kind, cell_of
from sphynx.search.supernet.mixture import Mixtures, single_path
from sphynx.search.supernet.weights import SharedWeights
from sphynx.space.cell import EDGES_PER_NODE, INPUT_NODES, Cell, Edge
from sphynx.space.genotype import Genotype

INIT_RANGE = 0.1
STRENGTH_SAMPLES = 20


@dataclass(frozen=True)
class Sample:
    genotype: Genotype
    log_probability: Tensor
    entropy: Tensor


class Controller(nn.Module):
    """Per intermediate node and edge: which earlier node (attention over their states), then which operation.

    Unlike in the released code, the states of the two input nodes are kept, not zeroed, and each source is followed by
    its operation: the controller can tell which input an operation is for.
    """

    def __init__(self, space: CellSpace, recipe: SearchRecipe, generator: torch.Generator) -> None:
        super().__init__()
        hidden = recipe.enas_hidden
        self.space, self.recipe, self.generator = space, recipe, generator
        self.cell = nn.LSTMCell(hidden, hidden)
        self.start = nn.Parameter(torch.empty(1, hidden))
        self.operation_embedding = nn.Embedding(len(space.operations), hidden)
        self.operation_logits = nn.Linear(hidden, len(space.operations), bias=False)
        self.anchor = nn.Linear(hidden, hidden, bias=False)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.attention = nn.Linear(hidden, 1, bias=False)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.uniform_(-INIT_RANGE, INIT_RANGE, generator=generator)

    def forward(self) -> Sample:
        state: tuple[Tensor, Tensor] | None = None
        cells, tallies = [], []
        for _ in KINDS:  # the reduce cell is sampled after, and given, the normal cell
            cell, state, tally = self._sample_cell(state)
            cells.append(cell)
            tallies.append(tally)
        total = torch.stack(tallies).sum(dim=0)
        return Sample(Genotype(cells[0], cells[1], name="enas"), total[0], total[1])

    def _sample_cell(self, state: tuple[Tensor, Tensor] | None) -> tuple[Cell, tuple[Tensor, Tensor], Tensor]:
        tally = torch.zeros(2)  # log probability, entropy
        inputs: Tensor = self.start
        anchors, projected = [], []
        for _ in range(INPUT_NODES):
            state = self.cell(inputs, state)
            anchors.append(state[0])
            projected.append(self.anchor(state[0]))
        nodes = []
        for _ in self.space.intermediates:
            edges = []
            for _ in range(EDGES_PER_NODE):
                state = self.cell(inputs, state)
                scores = self.attention(torch.tanh(torch.cat(projected) + self.query(state[0])))
                source, term = self._draw(scores.flatten(), self.recipe.enas_tanh_constant)
                tally = tally + term
                state = self.cell(anchors[source], state)
                constant = self.recipe.enas_tanh_constant / self.recipe.enas_operation_tanh_reduce
                operation, term = self._draw(self.operation_logits(state[0]).flatten(), constant)
                tally = tally + term
                inputs = self.operation_embedding.weight[operation : operation + 1]
                edges.append(Edge(self.space.operations[operation], source))
            state = self.cell(inputs, state)
            anchors.append(state[0])
            projected.append(self.anchor(state[0]))
            inputs = self.start
            nodes.append((edges[0], edges[1]))
        assert state is not None
        return tuple(nodes), state, tally

    def _draw(self, logits: Tensor, tanh_constant: float) -> tuple[int, Tensor]:
        logs = (tanh_constant * torch.tanh(logits)).log_softmax(dim=0)
        chosen = int(torch.multinomial(logs.detach().exp(), 1, generator=self.generator))
        return chosen, torch.stack([logs[chosen], -(logs.exp() * logs).sum()])


class Enas:
    name = "enas"

    def __init__(self, shared: SharedWeights, generator: torch.Generator) -> None:
        self.shared, self.space = shared, shared.network.space
        recipe = shared.recipe
        self.warmup_epochs = int(recipe.warmup * recipe.epochs)
        self.controller = Controller(self.space, recipe, generator)
        # No momentum in the first moment, as released: each reward's noise is its own.
        self.optimiser = torch.optim.Adam(
            self.controller.parameters(), lr=recipe.enas_learning_rate, betas=(0.0, 0.999), eps=1e-3
        )
        self.cost = CostTerm(shared.objective, self.space, shared.network.cell_counts, torch.device("cpu"))
        self.baseline: float | None = None
        self.epoch = 0
        self.best = self._sample().genotype

    def start_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    @torch.no_grad()
    def _sample(self) -> Sample:
        return self.controller()

    def step(self, train: Batch, held_out: Batch) -> Tensor:
        del held_out  # the controller learns after the pass
        return self.shared.update(train, single_path(self.space, self._sample().genotype))

    def finish_epoch(self, held_out: Iterable[Batch], *, last: bool) -> None:
        del last
        batches: list[Batch] = []
        for batch in held_out:
            batches = [*batches, batch][-1:]
            if self.epoch >= self.warmup_epochs:
                self._teach(batch)
        if batches:
            samples = [self._sample().genotype for _ in range(self.shared.recipe.enas_derive_samples)]
            self.best = max(samples, key=lambda genotype: self._reward(genotype, batches[0]))

    def _reward(self, genotype: Genotype, batch: Batch) -> float:
        reward = float(self.shared.reward(batch, single_path(self.space, genotype)))
        return reward - float(self.cost.of(usage(self.space, [genotype]))) if self.cost else reward

    def _teach(self, batch: Batch) -> None:
        recipe = self.shared.recipe
        sample: Sample = self.controller()
        reward = self._reward(sample.genotype, batch)
        if self.baseline is None:
            self.baseline = reward
        else:
            self.baseline += (1 - recipe.enas_baseline_decay) * (reward - self.baseline)
        loss = -(reward - self.baseline) * sample.log_probability - recipe.enas_entropy_weight * sample.entropy
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()

    def strengths(self) -> dict[Kind, Tensor]:
        """How often the controller now draws each operation on each edge."""
        return usage(self.space, [self._sample().genotype for _ in range(STRENGTH_SAMPLES)])

    def genotype(self) -> Genotype:
        return self.best

    def mixtures(self) -> Mixtures:
        return single_path(self.space, self.best)

    def state_dict(self) -> dict[str, Any]:
        return {
            "controller": self.controller.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "baseline": self.baseline,
            "best": self.best.to_json(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.controller.load_state_dict(state["controller"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.baseline = state["baseline"]
        self.best = Genotype.from_json(state["best"])


def usage(space: CellSpace, genotypes: list[Genotype]) -> dict[Kind, Tensor]:
    """(edges, operations + zero) per kind: the share of the genotypes that use an operation on an edge."""
    counts = {kind: torch.zeros(len(space.edges), len(space.candidates)) for kind in KINDS}
    for genotype in genotypes:
        for kind in KINDS:
            for edge, columns in enumerate(space.paths_of(cell_of(genotype, kind))):
                for column in columns:
                    counts[kind][edge, column] += 1 / len(genotypes)
    return counts
