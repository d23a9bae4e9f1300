"""A trained network's files as arrays: design, weights in single precision, how inputs are normalised. No torch.

The auxiliary head serves training only and is not kept. A file's metadata names the design it belongs to. Kernels may
be kept as bytes, with a scale for each of their outputs, or in half precision (older files).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from sphynx.errors import InputError
from sphynx.space.artifact import DESIGN, MODEL
from sphynx.space.files import AnyDesign, design_fingerprint, load_any_design

NORMALISATION = "normalisation.json"
SCALE = ".scale"  # behind the name of a kernel that is kept as bytes


@dataclass(frozen=True, eq=False)
class StoredNetwork:
    """`arrays` are called as torch calls the tensors of the network that `network.build` makes of the design."""

    design: AnyDesign
    arrays: dict[str, NDArray[Any]]


def load_stored(path: Path) -> StoredNetwork:
    """Read a run folder, or a weights file that has its design.json beside it."""
    file = path / MODEL if path.is_dir() else path
    design = load_any_design(file.parent / DESIGN)
    if not file.is_file():
        raise InputError("there is no trained model", where=str(file), remedy="Finish the training run first.")
    try:
        with safe_open(file, framework="np") as opened:
            belongs_to = (opened.metadata() or {}).get("design")
            arrays = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, OSError, TypeError) as error:  # the last: of a kind that numpy does not have
        raise InputError(f"the weights cannot be read ({error})", where=str(file), remedy="Train it again.") from error
    if belongs_to != design_fingerprint(design):
        raise InputError(
            f"the weights do not belong to the design that {DESIGN} describes",
            where=str(file),
            remedy="Keep both files of one run together.",
        )
    try:
        _make_full(arrays)
    except (KeyError, ValueError) as error:
        raise misfit(error, file) from error
    return StoredNetwork(design, arrays)


def misfit(error: Exception, file: Path) -> InputError:
    return InputError(f"the weights do not fit the design ({error})", where=str(file), remedy="Train it again.")


def _make_full(arrays: dict[str, NDArray[Any]]) -> None:
    for name in [name for name, array in arrays.items() if array.dtype == np.int8]:
        scale = arrays.pop(name + SCALE)
        arrays[name] = arrays[name] * scale.reshape(-1, *[1] * (arrays[name].ndim - 1))
    for name, array in arrays.items():
        if array.dtype == np.float16:
            arrays[name] = array.astype(np.float32)


def load_normalisation(path: Path) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Read the mean and deviation of each channel, in units of the pixel range."""
    file = (path if path.is_dir() else path.parent) / NORMALISATION
    try:
        described = json.loads(file.read_text())
        return tuple(map(float, described["mean"])), tuple(map(float, described["std"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(
            f"the normalisation of the inputs cannot be read ({error})", where=str(file), remedy="Train it again."
        ) from error
