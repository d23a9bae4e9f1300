"""One party's half of a bundle: what it keeps between the offline and the online phase of one inference.

A bundle is spent by one inference. Both parties' halves carry one random identifier, the hash of the program they were
made for, the ReLU backend and the batch size; whoever loads one checks all of it before use. One file, readable by its
owner only: safetensors, whose metadata hold these and a hash of the arrays. Arrays are plain numbers, nothing in the
file is code.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import save_file

from sphynx.errors import InputError, OtherFormatError
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.folder import content_hash, read_arrays
from sphynx.program.ir import Program
from sphynx.program.naming import short_hash
from sphynx.protocol.relu import Arrays

Role = Literal["server", "client"]

FORMAT = "sphynx-bundle/8"
TEMPORARY = ".new"  # ends the name of a file that is being written
ID_BYTES = 16
MAX_BATCH = 1 << 16
_KINDS = ("uint8", "uint32", "uint64")
_MATERIAL = "material/"  # before a layer's name, and behind that two slashes
_REMEDY = "Discard it and prepare a new bundle."


def share_name(tensor: str) -> str:
    return f"share/{tensor}"


def mask_name(tensor: str) -> str:
    return f"mask/{tensor}"


@dataclass(frozen=True, eq=False)
class Bundle:
    bundle_id: bytes
    program_hash: str
    role: Role
    backend: Backend
    batch: int
    arrays: Arrays = field(repr=False)  # secrets: no log or traceback may print them
    check_plan: str = ""  # against a client that cheats (verify/plan.py); empty where clients are trusted

    def __post_init__(self) -> None:
        faults = [
            fault
            for fault, found in (
                (f"its identifier has {len(self.bundle_id)} bytes, not {ID_BYTES}", len(self.bundle_id) != ID_BYTES),
                (f"there is no role {self.role!r}", self.role not in get_args(Role)),
                (f"there is no ReLU backend {self.backend!r}", self.backend not in BACKENDS),
                (f"a batch of {self.batch} is not valid", not 1 <= self.batch <= MAX_BATCH),
            )
            if found
        ]
        if faults:
            raise InputError("; ".join(faults), where="bundle", remedy=_REMEDY)

    @property
    def bytes(self) -> int:
        return sum(array.nbytes for array in self.arrays.values())

    def check(self, program: Program, role: Role, check_plan: str = "") -> None:
        """Before anything is computed from it."""
        if self.check_plan != check_plan:
            raise InputError(
                "it was made for another kind of security",
                where="bundle",
                remedy="Prepare a bundle in the mode that is served.",
            )
        if self.program_hash != program.content_hash:
            made_for, asked = map(short_hash, (self.program_hash, program.content_hash))
            raise InputError(
                f"it was made for the program {made_for}, not for {asked}",
                where="bundle",
                remedy="Prepare a bundle for this program.",
            )
        if self.role != role:
            raise InputError(
                f"it is the {self.role}'s half, not the {role}'s", where="bundle", remedy=f"Use the {role}'s own half."
            )

    def array(self, name: str, shape: tuple[int, ...], kind: type[np.generic]) -> NDArray[Any]:
        found = self.arrays.get(name)
        if found is None or found.shape != shape or found.dtype != kind:
            raise InputError(f"{name} is missing or not {kind.__name__} {shape}", where="bundle", remedy=_REMEDY)
        return found

    def keep_materials(self, materials: Mapping[str, Arrays]) -> None:
        for layer, material in materials.items():
            self.arrays.update({f"{_MATERIAL}{layer}//{key}": array for key, array in material.items()})

    def materials(self) -> dict[str, Arrays]:
        """Each layer's material."""
        found: dict[str, Arrays] = {}
        for name, array in self.arrays.items():
            layer, slashes, key = name.removeprefix(_MATERIAL).rpartition("//")
            if slashes:
                found.setdefault(layer, {})[key] = array
        return found

    def save(self, path: Path) -> None:
        """Atomically: a reader finds the whole file or none. Never readable by others, not even while it is written."""
        temporary = self.write_beside(path)
        try:
            temporary.replace(path)
        except OSError as error:
            raise _unwritable(path, temporary, error) from error

    def write_beside(self, path: Path) -> Path:
        """The first part of `save`, and all of its time: a file that is on the disk and has yet to be renamed."""
        temporary = path.with_name(path.name + TEMPORARY)
        metadata = {
            "format": FORMAT,
            "bundle_id": self.bundle_id.hex(),
            "program": self.program_hash,
            "role": self.role,
            "backend": self.backend,
            "batch": str(self.batch),
            "check": self.check_plan,
        }
        metadata["content"] = content_hash(self.arrays, metadata)  # a half cannot pass for another
        try:
            temporary.unlink(missing_ok=True)
            temporary.touch(mode=0o600, exist_ok=False)
            save_file({name: np.ascontiguousarray(array) for name, array in self.arrays.items()}, temporary, metadata)
            temporary.chmod(0o600)
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
        except (OSError, SafetensorError) as error:
            raise _unwritable(path, temporary, error) from error
        except BaseException:
            _remove(temporary)
            raise
        return temporary


def identify(bundle: Bundle) -> bytes:
    """Name it in the checks of its OTs, which nobody can then answer for another one."""
    program_hash, backend = bundle.program_hash.encode(), bundle.backend.encode()
    return b"%s %s %s %d" % (bundle.bundle_id, program_hash, backend, bundle.batch) + bundle.check_plan.encode()


def _unwritable(path: Path, temporary: Path, error: Exception) -> InputError:
    _remove(temporary)
    why = error.strerror if isinstance(error, OSError) else error
    return InputError(
        f"it cannot be written ({why})", where=str(path), remedy="Choose another folder, or free disk space."
    )


def _remove(temporary: Path) -> None:
    """A half-written file would keep a full disk full."""
    with contextlib.suppress(OSError):
        temporary.unlink(missing_ok=True)


def load_bundle(path: Path) -> Bundle:
    """Reads what `Bundle.save` writes, trusting nothing."""
    try:
        mode = path.stat().st_mode
    except OSError:  # asked once: another thread may delete it at any time
        mode = 0
    if not stat.S_ISREG(mode):
        raise InputError("there is no such bundle", where=str(path), remedy="Prepare one.")
    if mode & 0o077:
        raise InputError(
            "other users may read or write it: its secrets may be known",
            where=str(path),
            remedy="Discard it, chmod 700 its folder, and prepare a new bundle.",
        )
    metadata, arrays = read_arrays(path, _REMEDY)
    content = metadata.pop("content", "")
    if metadata.get("format") != FORMAT:
        what = f"its format is {metadata.get('format')!r}, not {FORMAT}"
        raise OtherFormatError(what, where=str(path), remedy=_REMEDY)
    if any(str(array.dtype) not in _KINDS for array in arrays.values()):
        raise InputError("it contains numbers of an unexpected type", where=str(path), remedy=_REMEDY)
    if content != content_hash(arrays, metadata):
        raise InputError("its content does not match its hash: it was damaged", where=str(path), remedy=_REMEDY)
    try:
        return Bundle(
            bytes.fromhex(metadata["bundle_id"]),
            metadata["program"],
            metadata["role"],  # type: ignore[arg-type]  # the constructor checks it
            metadata["backend"],  # type: ignore[arg-type]  # and this
            int(metadata["batch"]),
            arrays,
            metadata["check"],
        )
    except (KeyError, ValueError):
        raise InputError("its metadata is incomplete", where=str(path), remedy=_REMEDY) from None
