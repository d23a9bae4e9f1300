"""The questions that every kind of design answers: its exact counts, from the description alone, and its file."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from sphynx.space.tally import Account


class Described(ABC):
    """The base of all designs. Counts are of one image; nothing is built for them."""

    @property
    @abstractmethod
    def account(self) -> Account:
        """The counts of every layer, and in all."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]: ...

    @property
    def relus(self) -> int:
        return self.account.total.relus

    @property
    def parameters(self) -> int:
        return self.account.total.parameters

    @property
    def macs(self) -> int:
        """Multiply-accumulates."""
        return self.account.total.macs

    def save(self, path: str | Path) -> None:
        """Write this design as a design.json."""
        Path(path).write_text(json.dumps(self.to_json(), indent=2) + "\n")
