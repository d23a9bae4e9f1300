"""Read a .pt2 file as JSON and tensors, without running any of it.

torch.export.load unpickles what its safe loader rejects, evaluates expressions and looks up whatever names a file
gives. Here only these members are read, and nothing in them is called:

    NAME/models/model.json                        the graph, for stored.py
    NAME/data/weights/model_weights_config.json   for each weight its member, kind of numbers, sizes and strides
    NAME/data/weights/weight_0 ...                the numbers
    NAME/data/constants/                          the same of constants: model_constants_config.json, tensor_0 ...

torch 2.8 and 2.9 have weights/model.pt and constants/model.pt instead, 2.6 and 2.7 serialized_*.json and .pt without
folders. Pickles (.pt) are read by torch's safe loader alone. No member is compressed, and all of them together are no
larger than the file: a small file cannot become a large one.
"""

from __future__ import annotations

import io
import json
import re
import sys
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from sphynx.compiler.frontend.operators.sizes import LARGEST_MAP
from sphynx.errors import InputError

Json = dict[str, Any]
_MODEL, _OLD_MODEL = "models/model.json", "serialized_exported_program.json"
_PICKLES = re.compile(r"data/(weights|constants|sample_inputs)/.*\.pt|serialized_\w+\.pt")
_OLD_TENSORS = ("serialized_state_dict.pt", "serialized_constants.pt")
_SAVE_AGAIN = "Make it again with torch.export.save."
_STRANGE = "Do not open it with torch either: torch.export.load could run code that it holds."

# As the format numbers them; those that a network can have.
DTYPES = {
    1: torch.uint8,
    2: torch.int8,
    3: torch.int16,
    4: torch.int32,
    5: torch.int64,
    6: torch.float16,
    7: torch.float32,
    8: torch.float64,
    12: torch.bool,
    13: torch.bfloat16,
}


@dataclass(frozen=True, eq=False)
class Archive:
    program: Json
    tensors: Mapping[str, Tensor]  # weights, buffers and constants by the names that the program gives them


def read_archive(path: Path) -> Archive:
    """Refuse what torch.export.save does not write, and pickles that torch's safe loader rejects."""
    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            members = _members(archive, path.stat().st_size)
            return _read(archive, members)
    except InputError as error:
        raise InputError(error.what, where=str(path), remedy=error.remedy) from None
    except Exception as error:  # a damaged archive fails in any of its readers
        raise invalid_archive(error, path) from None


def invalid_archive(error: Exception, path: Path) -> InputError:
    named = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
    fault = (named.splitlines() or [type(error).__name__])[0][:200]
    return InputError(f"it is not a valid .pt2 file ({fault})", where=str(path), remedy=_SAVE_AGAIN)


def _members(archive: zipfile.ZipFile, file_bytes: int) -> dict[str, zipfile.ZipInfo]:
    """List the members by their names without the folder that all of them are in."""
    found = archive.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED for info in found):
        raise ValueError("it has compressed members, which torch.export.save does not write")
    if sum(info.file_size for info in found) > file_bytes:
        raise ValueError("its members are larger than the file")
    names = {info.filename: info for info in found}
    if _OLD_MODEL in names:
        return names
    return {name.split("/", 1)[-1]: info for name, info in names.items()}


def _read(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo]) -> Archive:
    if _MODEL not in members and _OLD_MODEL not in members:
        raise ValueError("it holds no exported program")
    byte_order = archive.read(members["byteorder"]).decode() if "byteorder" in members else sys.byteorder
    if byte_order != sys.byteorder:
        raise ValueError(f"its numbers are {byte_order}-endian")
    pickles = {name: _unpickle(archive.read(members[name]), name) for name in members if _PICKLES.fullmatch(name)}
    if _OLD_MODEL in members:
        state, constants = (pickles[name] for name in _OLD_TENSORS)
        return Archive(json.loads(archive.read(members[_OLD_MODEL])), _plain({**state, **constants}))
    tensors: dict[str, Tensor] = {}
    for kind in ("weights", "constants"):
        pickle = pickles.get(f"data/{kind}/model.pt")
        tensors.update(_load_tensor(archive, members, kind) if pickle is None else _plain(pickle))
    return Archive(json.loads(archive.read(members[_MODEL])), tensors)


def _unpickle(content: bytes, name: str) -> Json:
    """Unpickle a member by torch's safe loader; sample inputs are a tuple, of which nothing is used."""
    if not content:
        return {}
    with zipfile.ZipFile(io.BytesIO(content)) as inner:
        _members(inner, len(content))
    try:
        found = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:
        called = re.search(r"GLOBAL ([\w.]+)", str(error))
        fault = f"it refers to {called[1]}" if called else type(error).__name__
        raise InputError(
            f"its member {name} is a pickle that torch's safe loader rejects ({fault})",
            remedy=f"{_STRANGE} {_SAVE_AGAIN}",
        ) from None
    return found if isinstance(found, dict) else {}


def _plain(found: Json) -> dict[str, Tensor]:
    for name, value in found.items():
        if type(value) not in (Tensor, torch.nn.Parameter):
            raise ValueError(f"{name} is a {type(value).__name__}, not a plain tensor")
    return {name: value.detach() for name, value in found.items()}


def _load_tensor(archive: zipfile.ZipFile, members: Mapping[str, zipfile.ZipInfo], kind: str) -> dict[str, Tensor]:
    """The weights or the constants; several may be views of one member."""
    folder = f"data/{kind}"
    contents: dict[str, bytearray] = {}
    found = {}
    for name, meta in json.loads(archive.read(members[f"{folder}/model_{kind}_config.json"]))["config"].items():
        member = str(meta["path_name"])
        if meta["use_pickle"] or meta["tensor_meta"] is None:
            raise InputError(
                f"its {kind} hold a pickled object ({folder}/{member}), not plain numbers",
                remedy=f"Export the network with ordinary tensors. {_STRANGE}",
            )
        if member not in contents:
            contents[member] = bytearray(archive.read(members[f"{folder}/{member}"]))
        found[name] = _tensor(contents[member], meta["tensor_meta"], name)
    return found


def _tensor(content: bytearray, meta: Json, name: str) -> Tensor:
    dtype = DTYPES.get(meta["dtype"])
    if dtype is None:
        raise ValueError(f"{name} has numbers of kind {meta['dtype']}")
    sizes, strides = ([_whole(n) for n in meta[key]] for key in ("sizes", "strides"))
    offset = _whole(meta["storage_offset"])
    if 0 in sizes:
        return torch.empty(sizes, dtype=dtype)
    flat = torch.frombuffer(content, dtype=dtype)
    if prod(sizes) > max(flat.numel(), LARGEST_MAP):  # strides of zero repeat what there is
        raise ValueError(f"{name} is larger than its numbers")
    return flat.as_strided(sizes, strides, offset)  # within them, or torch raises


def _whole(given: Json) -> int:
    """A length that does not depend on the input."""
    found = given["as_int"]
    if type(found) is not int or found < 0:
        raise ValueError(f"{found!r} is not a length")
    return found
