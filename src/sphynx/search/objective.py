"""The objective of a search: a loss on the network's output and, as an option, a price on the operations it uses.

Prices come in as plain numbers per operation (ReLUs, bytes, milliseconds: whatever the caller measured), so that the
search knows nothing of how a network will be run. This is the Sphynx paper's future work, its latency-aware objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from sphynx.errors import InputError
from sphynx.search.supernet.cellspace import ZERO, CellSpace, Kind

Batch = tuple[Tensor, Tensor]
Loss = Callable[[Tensor, Tensor], Tensor]
TaughtLoss = Callable[..., Tensor]  # of logits, labels and, where a teacher is listened to, its logits


def accuracy(logits: Tensor, labels: Tensor) -> Tensor:
    return (logits.argmax(dim=1) == labels).float().mean()


@dataclass(frozen=True)
class Objective:
    """`reward` is what strategies that learn from samples maximise; its scale is the method's (ENAS: accuracy)."""

    loss: Loss = functional.cross_entropy
    reward: Loss = accuracy
    operation_costs: Mapping[str, float] = field(default_factory=dict)
    cost_weight: float = 0.0

    def __post_init__(self) -> None:
        for name, cost in self.operation_costs.items():
            if isinstance(cost, bool) or not isinstance(cost, int | float):
                raise InputError(f"{name}: {cost!r} is not a number", where="`costs`", remedy="Write it as conv5=2.5.")
        if self.cost_weight and not self.operation_costs:
            raise InputError(
                "`cost_weight` needs `costs`", remedy="Give the cost of an operation, such as 2.0 for conv5."
            )
        if self.operation_costs and not self.cost_weight:
            raise InputError(
                "`costs` have no effect without a weight",
                remedy="Give their weight, such as `cost_weight=0.1`, or leave `costs` out.",
            )
        if not all(map(math.isfinite, (self.cost_weight, *self.operation_costs.values()))):
            raise InputError("costs and their weight must be finite numbers", remedy="Write them as 2.5.")


class CostTerm:
    """cost_weight x the expected cost per edge, averaged over all cells; the most expensive operation costs 1."""

    def __init__(
        self, objective: Objective, space: CellSpace, cell_counts: Mapping[Kind, int], device: torch.device
    ) -> None:
        costs = objective.operation_costs
        unknown = sorted(set(costs) - set(space.operations))
        if unknown:
            raise InputError(
                f"costs are given for {', '.join(unknown)}, which the space does not have",
                remedy=f"Its operations are {', '.join(space.operations)}.",
            )
        highest = max([abs(cost) for cost in costs.values()], default=0.0) or 1.0
        prices = [0.0 if name == ZERO else costs.get(name, 0.0) / highest for name in space.candidates]
        self._prices = torch.tensor(prices, device=device)
        self._weight = objective.cost_weight
        self._shares = {kind: count / sum(cell_counts.values()) for kind, count in cell_counts.items()}

    def __bool__(self) -> bool:
        return self._weight != 0

    def of(self, probabilities: Mapping[Kind, Tensor]) -> Tensor:
        """From (edges, operations + zero) per kind: how likely, or how often, each operation is used."""
        total = torch.zeros((), device=self._prices.device)
        for kind, chances in probabilities.items():
            total = total + self._shares[kind] * (chances @ self._prices).mean()
        return self._weight * total
