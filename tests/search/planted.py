"""Search problems with a known best: a tiny supernet whose targets are its own outputs through one planted genotype.

The searching network starts with the weights that made the targets, so the planted cells reach the lowest loss; the
weights are trained too, slowly, as a strategy would. Two networks:
- `LinearCells`: nodes are vectors, operations tanh(x W), no batch norm; milliseconds, and any strategy can run on it.
- the real `Supernet`, small, for what lives there (partial channels).
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from sphynx.network.backend import fast_convolutions
from sphynx.search.objective import Batch, Objective
from sphynx.search.recipe import SearchRecipe
from sphynx.search.strategies import STRATEGIES
from sphynx.search.strategies.strategy import Strategy
from sphynx.search.supernet.cellspace import KINDS, CellSpace, Kind, cell_of
from sphynx.search.supernet.mixture import Mixture, Mixtures, single_path
from sphynx.search.supernet.supernet import Supernet
from sphynx.search.supernet.weights import MixedNetwork, SharedWeights
from sphynx.space.cell import INPUT_NODES
from sphynx.space.design import Design
from sphynx.space.genotype import Genotype
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape

OPERATIONS = ("dil3", "avg_pool", "skip")
BATCH = 32
WIDTH = 12  # of the vectors in LinearCells
STRETCH = 1.5  # of LinearCells's targets: the planted operations should count more than 1, all others less


class LinearCells(nn.Module):
    """One cell of each kind on the same inputs; the output is all their intermediate nodes."""

    def __init__(self, space: CellSpace) -> None:
        super().__init__()
        self.space = space
        shape = (len(space.edges), len(space.operations), WIDTH, WIDTH)
        self.inputs = nn.Parameter(torch.randn(INPUT_NODES, WIDTH, WIDTH) / WIDTH**0.5)
        self.matrices = nn.ParameterDict({kind: nn.Parameter(2 * torch.randn(shape) / WIDTH**0.5) for kind in KINDS})

    @property
    def cell_counts(self) -> dict[Kind, int]:
        return {"normal": 1, "reduce": 1}

    def forward(self, x: Tensor, mixtures: Mixtures) -> Tensor:
        return torch.cat([self._cell(x, self.matrices[kind], mixtures[kind]) for kind in KINDS], dim=1)

    def _cell(self, x: Tensor, matrices: Tensor, mixture: Mixture) -> Tensor:
        nodes = [x @ self.inputs[0], x @ self.inputs[1]]
        scale = mixture.edges
        for target in self.space.intermediates:
            edges = list(self.space.incoming(target))
            out = torch.tanh(torch.einsum("sbi,soij->sobj", torch.stack(nodes), matrices[edges]))
            if mixture.weights is not None:
                weights = mixture.weights[edges, :-1]
            else:
                assert mixture.paths is not None
                weights = torch.zeros(len(edges), len(self.space.candidates))
                for row, edge in enumerate(edges):
                    weights[row, list(mixture.paths[edge])] = 1.0
                weights = weights[:, :-1]
            if scale is not None:
                weights = weights * scale[edges][:, None]
            nodes.append(torch.einsum("sobj,so->bj", out, weights))
        return torch.cat(nodes[INPUT_NODES:], dim=1)


def explained(out: Tensor, target: Tensor) -> Tensor:
    """The share of the targets' variance over images that is met."""
    return 1 - functional.mse_loss(out, target) / target.var(dim=0).mean()


OBJECTIVE = Objective(loss=functional.mse_loss, reward=explained)


@dataclass(frozen=True)
class Planted:
    shared: SharedWeights
    space: CellSpace
    best: Genotype
    batch: Callable[[], Batch]


def plant_vectors(seed: int, recipe: SearchRecipe, nodes: int = 5, *, one_operation: bool = False) -> Planted:
    """`one_operation`: the planted cells use the same operation on all their edges."""
    torch.manual_seed(seed)
    space = CellSpace(nodes, OPERATIONS)
    operations = CellSpace(nodes, (OPERATIONS[seed % len(OPERATIONS)],)) if one_operation else space
    best = operations.random_genotype(random.Random(seed))
    return _planted(LinearCells(space), space, best, (WIDTH,), STRETCH, seed, recipe)


def plant_images(seed: int, recipe: SearchRecipe, *, channels: int = 4, divisor: int = 1) -> Planted:
    torch.manual_seed(seed)
    space, image = CellSpace(5, OPERATIONS), Shape(3, 4, 4)
    skeleton = Design(SPHYNX, channels, 2, (1,), image, 16, balancing="flop")
    best = space.random_genotype(random.Random(seed))
    return _planted(Supernet(skeleton, space, channel_divisor=divisor), space, best, image, 1.0, seed, recipe)


def _planted(
    network: LinearCells | Supernet,
    space: CellSpace,
    best: Genotype,
    shape: Sequence[int],
    stretch: float,
    seed: int,
    recipe: SearchRecipe,
) -> Planted:
    teacher: MixedNetwork = copy.deepcopy(network)
    generator = torch.Generator().manual_seed(seed)

    def batch() -> Batch:
        x = torch.randn(BATCH, *shape, generator=generator)
        with torch.no_grad():
            return x, stretch * teacher(x, single_path(space, best))

    return Planted(SharedWeights(network, recipe, OBJECTIVE), space, best, batch)


def search_planted(strategy: str, problem: Planted, seed: int, steps: int, passes: int = 1) -> Strategy:
    """The strategy after `steps` steps in each of the recipe's epochs.

    After each epoch's steps the held-out batches are gone over `passes` times (ENAS's controller learns then).
    """
    epochs = problem.shared.recipe.epochs
    with fast_convolutions(torch.device("cpu")):
        search = STRATEGIES[strategy](problem.shared, torch.Generator().manual_seed(seed))
        for epoch in range(epochs):
            problem.shared.start_epoch(epoch)
            search.start_epoch(epoch)
            for _ in range(steps):
                search.step(problem.batch(), problem.batch())
            search.finish_epoch([problem.batch() for _ in range(steps)] * passes, last=epoch + 1 == epochs)
        return search


def same_cells(one: Genotype, other: Genotype) -> bool:
    return all(
        sorted(pair) == sorted(pair_other)
        for kind in KINDS
        for pair, pair_other in zip(cell_of(one, kind), cell_of(other, kind), strict=True)
    )
