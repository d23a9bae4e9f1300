"""Sphynx: design networks that are cheap to run privately, and run them that way."""

from importlib import import_module
from types import ModuleType

__version__ = "0.1.0"


def __getattr__(name: str) -> ModuleType:
    """`import sphynx` is enough for `sphynx.network.load(...)`, and loads no torch before that is asked for."""
    if name == "network":
        return import_module("sphynx.network")
    raise AttributeError(f"module 'sphynx' has no attribute {name!r}")
