"""The compiled core's Python face: AES and PRG, garbling, oblivious transfer, bit-sliced GMW.

Each module here is thin: it allocates numpy buffers, names the parts, and calls sphynx.core._native, which
checks every buffer again and releases the interpreter lock while it works.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sphynx.core.age import warn_if_older
from sphynx.errors import MissingPartError

try:
    from sphynx.core import _native
except ImportError as error:
    raise MissingPartError(
        f"the compiled core is missing ({error})",
        where="sphynx.core",
        remedy="Install the package (pip install .) with a C++20 compiler on the path, such as g++ 12.",
    ) from error

warn_if_older(Path(_native.__file__), Path(__file__).parents[3] / "core")

__all__ = ["CpuFeatures", "Prg", "available_cores", "cpu_features", "limit_cores", "random_bytes"]

Prg = _native.Prg
available_cores = _native.available_cores  # that the core's threads may use
limit_cores = _native.limit_cores  # where several processes share the machine; 0: no limit


def random_bytes(prg: Prg, count: int) -> bytes:
    drawn = np.empty(count, np.uint8)
    prg.fill(drawn)
    return drawn.tobytes()


@dataclass(frozen=True)
class CpuFeatures:
    """The features that the CPU offers to the core, and the AES path that the core takes because of them."""

    available: tuple[str, ...]
    aes_path: str


def cpu_features() -> CpuFeatures:
    """Report the CPU's features for `sphynx doctor`."""
    found = _native.cpu_features()
    return CpuFeatures(tuple(name for name, present in found.items() if present), _native.aes_path())
