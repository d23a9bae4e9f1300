"""`sphynx doctor`: what this machine offers and what of it is in use."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from typing import Any

from sphynx.cli import options as opt
from sphynx.cli.output import print_json, print_table
from sphynx.errors import MissingPartError
from sphynx.threads import available_cores
from sphynx.version import __version__

PACKAGES = ("numpy", "torch", "safetensors", "matplotlib", "pillow", "scikit-learn", "typer", "rich")


def doctor(as_json: opt.Json = False) -> None:
    """Print CPU features in use, cores, torch, GPU and versions: what to attach to a bug report.

    Example:

      sphynx doctor --json
    """
    found = examine()
    if as_json:
        print_json(found)
        return
    print_table("sphynx doctor", ["part", "found"], ([key, _text(value)] for key, value in found.items()))


def examine() -> dict[str, Any]:
    found: dict[str, Any] = {
        "sphynx": __version__,
        "python": sys.version.split()[0],
        "machine": platform.machine(),
        "system": platform.platform(),
        "cores": available_cores(),
        "core": _core(),
        "packages": {name: _version(name) for name in PACKAGES},
        "gpu": _gpu(),
    }
    return found


def _core() -> dict[str, Any]:
    try:
        from sphynx.core import cpu_features

        features = cpu_features()
        return {"built": True, "aes_path": features.aes_path, "cpu_features": list(features.available)}
    except MissingPartError as error:
        return {"built": False, "remedy": error.remedy}


def _gpu() -> str | None:
    try:
        import torch
    except ImportError:
        return None
    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_text(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or "none"
    return "none" if value is None else str(value)
