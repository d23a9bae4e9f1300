"""Any network that can be built: its design.json, whose `format` says which kind it is, and its account."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sphynx.config import read_settings
from sphynx.errors import InputError
from sphynx.record import fingerprint
from sphynx.space.design import FORMAT as SPHYNX_FORMAT
from sphynx.space.design import design_from_json
from sphynx.space.genotype import genotype_from_json
from sphynx.space.json_file import read_json
from sphynx.space.micro import MICRO_FORMAT, MicroDesign
from sphynx.space.reduced import REDUCED_FORMAT, BaseDesign, ReducedDesign, reduced_from_json
from sphynx.space.reference import (
    RESNET18_FORMAT,
    VGG11_FORMAT,
    WIDE_RESNET_FORMAT,
    ResNet18Design,
    Vgg11Design,
    WideResNetDesign,
)
from sphynx.space.stream import STREAM_FORMAT, stream_from_json
from sphynx.space.tally import Account, Shape

ReferenceDesign = ResNet18Design | Vgg11Design | WideResNetDesign
AnyDesign = BaseDesign | ReducedDesign

_Comparison = MicroDesign | ReferenceDesign  # what a `Design` or a `StreamDesign` is compared with
_COMPARISONS: dict[str, type[_Comparison]] = {
    MICRO_FORMAT: MicroDesign,
    RESNET18_FORMAT: ResNet18Design,
    VGG11_FORMAT: Vgg11Design,
    WIDE_RESNET_FORMAT: WideResNetDesign,
}


def save_design(design: AnyDesign, path: Path) -> None:
    design.save(path)


def load_any_design(path: Path) -> AnyDesign:
    return any_design_from_json(read_json(path), where=str(path))


def any_design_from_json(data: Any, where: str = "design") -> AnyDesign:
    found = str(data.get("format")) if isinstance(data, Mapping) else ""
    if found == REDUCED_FORMAT:
        base = any_design_from_json(data.get("base"), where=f"{where}, base")
        if not isinstance(base, ReducedDesign):
            return reduced_from_json(data, base, where=where)
        raise InputError("its base is a reduced design itself", where=where, remedy="Reduce the original instead.")
    if found == STREAM_FORMAT:
        return stream_from_json(data, where=where)
    kind = _COMPARISONS.get(found)
    return design_from_json(data, where=where) if kind is None else _comparison(kind, data, where)


def design_fingerprint(design: AnyDesign) -> str:
    """A fingerprint of everything that the weights depend on: the whole design but its names."""
    described = design.to_json()
    del described["name"]
    base = described.get("base", described)
    base.pop("name", None)
    base.get("genotype", {}).pop("name", None)
    return fingerprint(described)


def account_of_any(design: AnyDesign) -> Account:
    return design.account


def is_design(data: Any) -> bool:
    """Return whether a file's JSON says that it is a design (perhaps of a version that cannot be read)."""
    formats = (SPHYNX_FORMAT, STREAM_FORMAT, REDUCED_FORMAT, *_COMPARISONS)
    kinds = [name.split("/")[0] for name in formats]
    return isinstance(data, Mapping) and str(data.get("format", "")).split("/")[0] in kinds


def _comparison(kind: type[_Comparison], data: Mapping[str, Any], where: str) -> _Comparison:
    image = data.get("image")
    if not (isinstance(image, list) and len(image) == 3 and all(type(item) is int for item in image)):
        raise InputError(
            f"image is {image!r}, not [channels, height, width]", where=where, remedy="Write it as [3, 32, 32]."
        )
    table = {key: value for key, value in data.items() if key != "format"} | {"image": Shape(*image)}
    if "genotype" in table:
        table["genotype"] = genotype_from_json(table["genotype"], where=f"{where}, genotype")
    return read_settings(kind, table, where=where)
