"""A compiled folder: program.json, and the weights, or what they follow from (compiler/derive.py). No torch.

program.json is public, and all that a client needs. It holds the program's JSON and its content hash; a file whose
content does not match its hash is refused.

weights.safetensors is the server's secret. It names the program it belongs to and the hash of its own content. Weights
are int8 or int16, bias maps int64. Reading checks names, kinds and shapes against the program before use. Of grouped
convolutions the weights inside a group are stored; files that hold all pairs of channels are read as well.
corrections.safetensors is a file of the same kind, in place of the weights where they can be derived.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from sphynx.errors import InputError
from sphynx.program.convolve import Array
from sphynx.program.ir import Program
from sphynx.program.parse import program_from_json
from sphynx.space.artifact import PROGRAM, refuse_uncompiled
from sphynx.space.json_file import read_json

HASH = "content_hash"
WEIGHTS, CORRECTIONS = "weights.safetensors", "corrections.safetensors"
Kinds = tuple[str, ...]  # of numbers, as numpy calls them

_INTEGERS = ("U8", "I8", "U16", "I16", "U32", "I32", "U64", "I64")  # as safetensors calls them
_REMEDY = "Keep the files of one compiled folder together, or compile the network again."


class Parts(Protocol):
    """A program compiled just now, with its parts; of a loaded one the corrections are not known any more."""

    @property
    def program(self) -> Program: ...
    @property
    def weights(self) -> Mapping[str, Array]: ...
    @property
    def corrections(self) -> Mapping[str, Array] | None: ...


def save_compiled(folder: Path, compiled: Parts, *, derivable: bool = False) -> None:
    """The secret first: a folder that has a program also has its weights, or from what to derive them."""
    folder.mkdir(parents=True, exist_ok=True)
    if derivable:
        if compiled.corrections is None:
            raise InputError("its corrections are missing", where=str(folder), remedy="Compile the model again.")
        save_corrections(folder, compiled.program, compiled.corrections)
        (folder / WEIGHTS).unlink(missing_ok=True)  # an older program's would be taken for this one's
    else:
        save_weights(folder, compiled.program, compiled.weights)
    save_program(folder, compiled.program)


def load_compiled(folder: Path) -> tuple[Program, dict[str, Array]]:
    """Read a program and its weights."""
    program = load_program(folder)
    return program, load_weights(folder, program)


def save_program(folder: Path, program: Program) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({HASH: program.content_hash, **program.to_json()}, indent=1)
        temporary = folder / (PROGRAM + ".new")
        temporary.write_text(text + "\n")
        temporary.replace(folder / PROGRAM)
    except OSError as error:
        raise InputError(
            f"it cannot be written ({error.strerror})", where=str(folder), remedy="Choose another folder."
        ) from error


def load_program(path: Path) -> Program:
    """From a compiled folder or from the file itself."""
    refuse_uncompiled(path)
    file = path / PROGRAM if path.is_dir() else path
    data = read_json(file)
    stated = data.pop(HASH, None) if isinstance(data, dict) else None
    program = program_from_json(data, where=str(file))
    if stated != program.content_hash:
        raise InputError(
            "its content does not match its hash: it was changed or damaged",
            where=str(file),
            remedy="Take the file from the server again, or compile the network again.",
        )
    return program


def save_weights(folder: Path, program: Program, weights: Mapping[str, Array]) -> None:
    groups = _groups(program)
    _save(folder / WEIGHTS, program, {name: inside_groups(a, groups.get(name, 1)) for name, a in weights.items()})


def load_weights(path: Path, program: Program) -> dict[str, Array]:
    """From a compiled folder or from the file itself; refuses the weights of another program."""
    wanted = {
        name: (("int64",) if name.endswith("/bias") else ("int8", "int16"), shape)
        for name, shape in program.weight_shapes.items()
    }
    groups = _groups(program)
    found = _load(path / WEIGHTS if path.is_dir() else path, program, wanted, groups)
    for name, count in groups.items():
        if found[name].shape != program.weight_shapes[name]:
            found[name] = ungrouped(found[name], count)
    return found


def inside_groups(weights: Array, groups: int) -> Array:
    """Keep the kernels of pairs of channels that share a group: [outputs, inputs of a group, ...]."""
    if groups == 1:
        return weights
    outputs, inputs = (length // groups for length in weights.shape[:2])
    parts = [weights[n * outputs : (n + 1) * outputs, n * inputs : (n + 1) * inputs] for n in range(groups)]
    inside: Array = np.concatenate(parts)
    return inside


def ungrouped(weights: Array, groups: int) -> Array:
    """A grouped convolution's kernels for all pairs of channels: zeros between groups."""
    if groups == 1:
        return weights
    outputs, inputs = weights.shape[0] // groups, weights.shape[1]
    whole = np.zeros((len(weights), groups * inputs, *weights.shape[2:]), weights.dtype)
    for group in range(groups):
        rows = slice(group * outputs, (group + 1) * outputs)
        whole[rows, group * inputs : (group + 1) * inputs] = weights[rows]
    return whole


def _groups(program: Program) -> dict[str, int]:
    """Groups of the weights whose channels are grouped."""
    return {
        step.weight_name(number): term.groups
        for step in program.linears
        for number, term in enumerate(step.terms)
        if term.groups > 1
    }


def save_corrections(folder: Path, program: Program, corrections: Mapping[str, Array]) -> None:
    _save(folder / CORRECTIONS, program, corrections)


def load_corrections(folder: Path, program: Program) -> dict[str, Array]:
    wanted = {step.name: (("int64",), (step.shape.channels,)) for step in program.linears}
    return _load(folder / CORRECTIONS, program, wanted)


def _save(file: Path, program: Program, arrays: Mapping[str, Array]) -> None:
    temporary = file.with_name(file.name + ".new")
    metadata = {"program": program.content_hash, "content": content_hash(arrays)}
    try:
        temporary.touch(mode=0o600)  # never readable by others, not even while it is written
        save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, temporary, metadata)
        temporary.chmod(0o600)
        temporary.replace(file)
    except (OSError, SafetensorError) as error:  # the latter where the disk is full
        raise InputError(
            f"it cannot be written ({error})", where=str(file), remedy="Free disk space, or choose another folder."
        ) from error


def _load(
    file: Path,
    program: Program,
    wanted: Mapping[str, tuple[Kinds, tuple[int, ...]]],
    groups: Mapping[str, int] = MappingProxyType({}),
) -> dict[str, Array]:
    if not file.is_file():
        raise InputError("there is no such file", where=str(file), remedy="Compile the network: sphynx compile --help.")
    try:
        file.open("rb").close()  # safetensors reports a file that it may not read as missing
    except PermissionError:
        raise InputError(
            "this user may not read it", where=str(file), remedy="Run as the user whose file it is, or chown it."
        ) from None
    metadata, arrays = read_arrays(file, _REMEDY)
    if metadata.get("program") != program.content_hash:
        raise InputError("it belongs to another program", where=str(file), remedy=_REMEDY)
    for name, (kinds, shape) in wanted.items():
        found = arrays.get(name)
        shapes = {shape} if name not in groups else {shape, (shape[0], shape[1] // groups[name], *shape[2:])}
        if found is None or found.shape not in shapes or str(found.dtype) not in kinds:
            raise InputError(f"{name} is missing or not {' or '.join(kinds)} {shape}", where=str(file), remedy=_REMEDY)
    if metadata.get("content") != content_hash(arrays):
        raise InputError("its content does not match its hash: it was damaged", where=str(file), remedy=_REMEDY)
    return arrays


def read_arrays(file: Path, remedy: str) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """(metadata, arrays) of a safetensors file. Its header is looked at first: numpy has no type for every kind that it
    may name, and fails on some in ways of its own."""
    try:
        with safe_open(file, framework="np") as opened:
            names = list(opened.keys())
            unknown = {kind for name in names if (kind := opened.get_slice(name).get_dtype()) not in _INTEGERS}
            if unknown:
                kinds = ", ".join(sorted(unknown))
                raise InputError(f"it contains numbers of an unexpected type ({kinds})", where=str(file), remedy=remedy)
            return dict(opened.metadata() or {}), {name: opened.get_tensor(name) for name in names}
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"it is damaged or truncated ({error})", where=str(file), remedy=remedy) from error


def content_hash(arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str] | None = None) -> str:
    """Hash named arrays, and what is said about them."""
    digest = hashlib.sha256()
    for key, value in sorted((metadata or {}).items()):
        digest.update(f"{key}={value}\n".encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.data)
    return digest.hexdigest()
