"""Record what a run ran on: versions, device, threads and the exact source, for `environment.json`."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

import torch

from sphynx import version

_PACKAGES = ("numpy", "torch", "pillow", "safetensors", "scikit-learn")


def describe_environment(device: torch.device | str = "cpu") -> dict[str, object]:
    return {
        "sphynx": version.__version__,
        "source_sha256": source_hash(),
        "commit": _commit(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "device": device_name(device),
        "cuda": torch.version.cuda,
        "threads": torch.get_num_threads(),
        "cores": os.cpu_count(),
        "command": _command(),
    }


def _command() -> list[str]:
    """The command as it can be given again; where it is installed concerns nobody."""
    module = getattr(sys.modules["__main__"], "__spec__", None)
    if module is None or module.origin != sys.argv[0]:  # a script, such as the one of `sphynx`
        return [Path(sys.argv[0]).name, *sys.argv[1:]]
    name = module.name.removesuffix(".__main__")
    return [*(name if name == "sphynx" else f"python -m {name}").split(), *sys.argv[1:]]


def device_name(device: torch.device | str) -> str:
    device = torch.device(device)
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} {device.type}, {torch.get_num_threads()} threads"


@cache
def source_hash() -> str:
    """A hash of the package's Python source: the same number means the same program, with or without git. Taken once
    in a process, which does not load what changes later."""
    root = Path(version.__file__).parent
    return digest_of_sources((str(path.relative_to(root)), path.read_bytes()) for path in sorted(root.rglob("*.py")))


def digest_of_sources(files: Iterable[tuple[str, bytes]]) -> str:
    """Digest names and contents, in the order of the names as paths."""
    digest = hashlib.sha256()
    for name, content in files:
        digest.update(name.encode() + b"\0" + content + b"\0")
    return digest.hexdigest()[:16]


@cache
def _commit() -> str | None:
    if told := os.environ.get("SPHYNX_COMMIT"):  # where the sources were copied without their history
        return told
    folder = Path(version.__file__).parent
    try:
        shown = subprocess.run(
            ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return shown.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
