"""The one interface of all search strategies: how the mixture is chosen and learned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeGuard

from torch import Tensor

from sphynx.search.objective import Batch
from sphynx.search.supernet.cellspace import CellSpace, Kind
from sphynx.search.supernet.mixture import Mixtures
from sphynx.space.genotype import Genotype


class Strategy(Protocol):
    name: str
    warmup_epochs: int  # the first ones, in which only w learns

    def start_epoch(self, epoch: int) -> None:
        """Sets the schedules that this strategy has."""

    def step(self, train: Batch, held_out: Batch) -> Tensor:
        """Learns from one batch of each half; the loss on the first, left on the device."""

    def finish_epoch(self, held_out: Iterable[Batch], *, last: bool) -> None:
        """Finish a pass over the training half as the method does (ENAS: train its controller; random search: rank)."""

    def strengths(self) -> dict[Kind, Tensor]:
        """(edges, operations + zero) per kind of cell: how strongly each operation is preferred now."""

    def genotype(self) -> Genotype:
        """The cells that the method would return now."""

    def mixtures(self) -> Mixtures:
        """The mixtures with which the supernet is evaluated now."""

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None: ...


class RelaxedStrategy(Strategy, Protocol):
    """A strategy that mixes all operations in every step, differentiably in its parameters: `is_relaxed` says so.

    One captured graph then serves all its steps, and what needs the mixture's gradient works with it: the Hessian's
    eigenvalue and perturbation-based selection.
    """

    is_relaxed: bool
    epoch: int

    def parameters(self) -> Sequence[Tensor]:
        """Everything that is learned on held-out data."""

    def tensors(self) -> list[Tensor]:
        """The tensors that a step changes besides w."""

    def held_out_loss(self, batch: Batch) -> Tensor:
        """The loss that the architecture minimises."""


def relaxed(strategy: Strategy) -> TypeGuard[RelaxedStrategy]:
    """Return whether a strategy says that it is relaxed; one of your own need not say anything."""
    return getattr(strategy, "is_relaxed", False)


def strongest(space: CellSpace, strengths: Mapping[Kind, Tensor], name: str) -> Genotype:
    """The finished cells by strength (see `CellSpace.derive`)."""
    return Genotype(space.derive(strengths["normal"].tolist()), space.derive(strengths["reduce"].tolist()), name=name)
