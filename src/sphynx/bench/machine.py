"""What a number was measured on: a number without this is worth nothing."""

from __future__ import annotations

import os
import platform
from importlib import metadata

from sphynx.core import _native, cpu_features
from sphynx.version import __version__

PACKAGES = ("numpy", "tenseal", "torch")


def available_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def describe_machine() -> dict[str, object]:
    """Call it before measuring: `load_average` should be the others' load, not the benchmark's own."""
    features = cpu_features()
    return {
        "architecture": platform.machine(),
        "system": platform.platform(),
        "cores": available_cores(),
        "cpu_features": list(features.available),
        "aes_path": features.aes_path,
        "rlwe_path": _native.rlwe.path(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        "versions": {
            "sphynx": __version__,
            "python": platform.python_version(),
            **{package: installed_version(package) for package in PACKAGES},
        },
    }


def installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
