"""The one interface of all search strategies: how the mixture is chosen and learned."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

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


def strongest(space: CellSpace, strengths: Mapping[Kind, Tensor], name: str) -> Genotype:
    """The finished cells by strength (see `CellSpace.derive`)."""
    return Genotype(space.derive(strengths["normal"].tolist()), space.derive(strengths["reduce"].tolist()), name=name)
