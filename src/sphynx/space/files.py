"""Any network that can be built: its design.json, whose `format` says which kind it is, and its account."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphynx.errors import InputError
from sphynx.record import fingerprint
from sphynx.space.design import Design
from sphynx.space.graph import GraphDesign
from sphynx.space.json_file import read_json
from sphynx.space.macro import MacroDesign
from sphynx.space.micro import MicroDesign
from sphynx.space.reduced import BaseDesign, ReducedDesign
from sphynx.space.reference import ResNet18Design, Vgg11Design, WideResNetDesign
from sphynx.space.stream import StreamDesign

ReferenceDesign = ResNet18Design | Vgg11Design | WideResNetDesign
AnyDesign = BaseDesign | ReducedDesign

_KINDS: dict[str, type[AnyDesign]] = {
    kind.FORMAT: kind
    for kind in (
        Design,
        StreamDesign,
        GraphDesign,
        MacroDesign,
        MicroDesign,
        ResNet18Design,
        Vgg11Design,
        WideResNetDesign,
        ReducedDesign,
    )
}


def load_any_design(path: Path) -> AnyDesign:
    return any_design_from_json(read_json(path), where=str(path))


def any_design_from_json(data: Any, where: str = "design") -> AnyDesign:
    kind = _KINDS.get(str(data.get("format")), Design) if isinstance(data, Mapping) else Design
    if kind is ReducedDesign:
        base = any_design_from_json(data.get("base"), where=f"{where}, base")
        if isinstance(base, ReducedDesign):
            raise InputError("its base is a reduced design itself", where=where, remedy="Reduce the original instead.")
        data = {**data, "base": base}
    return kind.from_json(data, where=where)


def design_fingerprint(design: AnyDesign) -> str:
    """A fingerprint of everything that the weights depend on: the whole design but its names."""
    described = design.to_json()
    del described["name"]
    base = described.get("base", described)
    base.pop("name", None)
    base.get("genotype", {}).pop("name", None)
    return fingerprint(described)


def is_design(data: Any) -> bool:
    """Return whether a file's JSON says that it is a design (perhaps of a version that cannot be read)."""
    kinds = [name.split("/")[0] for name in _KINDS]
    return isinstance(data, Mapping) and str(data.get("format", "")).split("/")[0] in kinds
