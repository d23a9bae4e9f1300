"""The models that come with Sphynx, by name, and the designs of networks. No torch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphynx.space.artifact import DESIGN
from sphynx.space.files import AnyDesign, load_any_design
from sphynx.zoo import shipped


def list_models(folder: Path | None = None) -> list[str]:
    """List the names of the installed models, or of those in a folder; each can be given wherever a run folder can.

    >>> "sphynx-cifar100-25k" in sphynx.list_models()
    True
    """
    return shipped.model_names(folder or shipped.SHIPPED)


def load_card(name: str, folder: Path | None = None) -> dict[str, Any]:
    """Load a model's card: how it was trained, how good it is, where it comes from.

    >>> sphynx.load_card("sphynx-cifar100-25k")["relus"]
    25600
    """
    return shipped.load_card(name, folder or shipped.SHIPPED)


def load_design(name_or_path: str | Path) -> AnyDesign:
    """Load the design of a model, of a run folder, or from a design.json.

    >>> sphynx.load_design("runs/digits").account.total.relus
    512
    """
    path = shipped.model_path(name_or_path)
    return load_any_design(path / DESIGN if path.is_dir() else path)
