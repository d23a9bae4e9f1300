"""PC-DARTS (Xu et al. 2020): DARTS on 1/K of the channels, with edge normalisation.

The supernet is built with `channel_divisor` K: the other channels go around the operations (see `fan`). That saves
memory and takes away the head start of operations without weights. What it adds in noise, edge normalisation takes
out: each node also weighs its incoming edges by a softmax, learned alongside, and an edge's strength is the product.
The architecture waits until w is warm (15 of 50 epochs).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sphynx.search.strategies.darts import Darts, initial_parameter
from sphynx.search.strategies.strategy import strongest
from sphynx.search.supernet.cellspace import KINDS, CellSpace, Kind
from sphynx.search.supernet.mixture import Mixture, Mixtures
from sphynx.search.supernet.weights import SharedWeights
from sphynx.space.genotype import Genotype


class PcDarts(Darts):
    def __init__(self, shared: SharedWeights, generator: torch.Generator) -> None:
        recipe, edges = shared.recipe, (len(shared.network.space.edges),)
        self.edge_logits: dict[Kind, nn.Parameter] = {
            kind: initial_parameter(edges, recipe.architecture_init, generator, shared.device) for kind in KINDS
        }
        super().__init__(shared, generator)
        self.name = "pc-darts"
        self.warmup_epochs = int(max(recipe.warmup, recipe.pc_warmup) * recipe.epochs)

    def parameters(self) -> list[nn.Parameter]:
        return [*self.alpha.values(), *self.edge_logits.values()]

    def mixtures(self) -> Mixtures:
        return {
            kind: Mixture(
                weights=self.alpha[kind].softmax(dim=-1), edges=softmax_per_node(self.space, self.edge_logits[kind])
            )
            for kind in KINDS
        }

    def strengths(self) -> dict[Kind, Tensor]:
        with torch.no_grad():
            return {
                kind: self.alpha[kind].softmax(dim=-1) * softmax_per_node(self.space, self.edge_logits[kind])[:, None]
                for kind in KINDS
            }

    def genotype(self) -> Genotype:
        """Choose by the products, also where `ranked_by` is alpha, which says nothing of how strong an edge is."""
        return strongest(self.space, self.strengths(), self.name)


def softmax_per_node(space: CellSpace, logits: Tensor) -> Tensor:
    """A softmax over the edges into each node; edges are numbered by target, so each node's lie side by side."""
    sizes = [len(space.incoming(target)) for target in space.intermediates]
    return torch.cat([part.softmax(dim=0) for part in torch.split(logits, sizes)])
