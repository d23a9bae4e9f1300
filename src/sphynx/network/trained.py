"""A trained network with what belongs to it: how its inputs are normalised, its classes, the data it knows.

trained = load_trained(Path("runs/digits"))        a run folder or its weights file
logits = trained.module((pixels / 255 - mean) / std)
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from sphynx.data.images import Statistics
from sphynx.data.source import DataSource
from sphynx.network.build import AnyNetwork
from sphynx.network.model import load_model, trained_on
from sphynx.network.stored import NORMALISATION, load_normalisation
from sphynx.space.artifact import CARD, refuse_untrained
from sphynx.space.files import AnyDesign


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """`module` is the torch module, for evaluation, in single precision on the CPU.

    >>> network = sphynx.load_network("runs/digits")
    >>> network.module.training, len(network.mean)
    (False, 1)
    """

    name: str  # a model's; otherwise as the run was given
    module: AnyNetwork
    mean: Statistics  # of each channel, in units of the pixel range; subtracted from pixel / 255
    std: Statistics  # and what that is divided by
    class_names: tuple[str, ...] = ()
    source: DataSource | None = None  # where its data were, if it says so
    is_model: bool = False  # packed, with a card; its program is named after it

    def __repr__(self) -> str:
        """One line, without the module's layers."""
        relus, design = self.design.account.total.relus, self.design
        return f"TrainedNetwork({self.name!r}: {design.image}, {design.classes} classes, {relus:,} ReLUs)"

    @property
    def design(self) -> AnyDesign:
        return self.module.design


def load_trained(path: Path) -> TrainedNetwork:
    refuse_untrained(path)
    mean, std = load_normalisation(path)
    is_model = (path / CARD).is_file()
    name = path.resolve().name if is_model else str(path)
    return TrainedNetwork(name, load_model(path), mean, std, _class_names(path), trained_on(path), is_model)


def _class_names(path: Path) -> tuple[str, ...]:
    """Older files have none."""
    described = json.loads(((path if path.is_dir() else path.parent) / NORMALISATION).read_text())
    return tuple(map(str, described.get("class_names", ())))
