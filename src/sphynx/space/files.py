"""Any network that can be built: its design.json, whose `format` says which kind it is, and its account."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphynx.config import read_settings
from sphynx.errors import InputError
from sphynx.space.account import account_of
from sphynx.space.design import FORMAT as SPHYNX_FORMAT
from sphynx.space.design import Design, design_from_json
from sphynx.space.genotype import genotype_from_json
from sphynx.space.json_file import read_json
from sphynx.space.micro import MICRO_FORMAT, MicroDesign, account_of_micro
from sphynx.space.reference import (
    RESNET18_FORMAT,
    VGG11_FORMAT,
    ResNet18Design,
    Vgg11Design,
    account_of_resnet18,
    account_of_vgg11,
)
from sphynx.space.tally import Account, Shape

AnyDesign = Design | MicroDesign | ResNet18Design | Vgg11Design

_REFERENCES: dict[str, type[MicroDesign] | type[ResNet18Design] | type[Vgg11Design]] = {
    MICRO_FORMAT: MicroDesign,
    RESNET18_FORMAT: ResNet18Design,
    VGG11_FORMAT: Vgg11Design,
}


def save_design(design: AnyDesign, path: Path) -> None:
    path.write_text(json.dumps(design.to_json(), indent=2) + "\n")


def load_any_design(path: Path) -> AnyDesign:
    return any_design_from_json(read_json(path), where=str(path))


def any_design_from_json(data: Any, where: str = "design") -> AnyDesign:
    kind = _REFERENCES.get(str(data.get("format"))) if isinstance(data, Mapping) else None
    return design_from_json(data, where=where) if kind is None else _reference(kind, data, where)


def load_design(path: Path) -> Design:
    """A Sphynx design, and nothing else."""
    return design_from_json(read_json(path), where=str(path))


def account_of_any(design: AnyDesign) -> Account:
    if isinstance(design, ResNet18Design):
        return account_of_resnet18(design)
    if isinstance(design, Vgg11Design):
        return account_of_vgg11(design)
    if isinstance(design, MicroDesign):
        return account_of_micro(design)
    return account_of(design)


def is_design(data: Any) -> bool:
    """Whether a file's JSON says that it is a design (perhaps of a version that cannot be read)."""
    formats = (SPHYNX_FORMAT, *_REFERENCES)
    kinds = [name.split("/")[0] for name in formats]
    return isinstance(data, Mapping) and str(data.get("format", "")).split("/")[0] in kinds


def _reference(
    kind: type[MicroDesign] | type[ResNet18Design] | type[Vgg11Design], data: Mapping[str, Any], where: str
) -> MicroDesign | ResNet18Design | Vgg11Design:
    image = data.get("image")
    if not (isinstance(image, list) and len(image) == 3 and all(type(item) is int for item in image)):
        raise InputError(
            f"image is {image!r}, not [channels, height, width]", where=where, remedy="Write it as [3, 32, 32]."
        )
    table = {key: value for key, value in data.items() if key != "format"} | {"image": Shape(*image)}
    if "genotype" in table:
        table["genotype"] = genotype_from_json(table["genotype"], where=f"{where}, genotype")
    return read_settings(kind, table, where=where)
