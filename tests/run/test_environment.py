"""A kept result says where it ran."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest

from sphynx.run.environment import describe_environment


def test_a_command_is_named_without_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are kept, shown and shared; the folder that a program is installed in is a person's own."""
    monkeypatch.setattr(sys, "argv", ["/home/somebody/env/bin/sphynx", "bench", "private", "-o", "out.json"])
    assert describe_environment()["command"] == ["sphynx", "bench", "private", "-o", "out.json"]


@pytest.mark.parametrize(
    ("module", "said"),
    [("reproduction.diagnosis", ["python", "-m", "reproduction.diagnosis"]), ("sphynx.__main__", ["sphynx"])],
)
def test_a_module_is_named_as_it_is_started(module: str, said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/home/somebody/clone/module.py", "final", "xrays-128"])
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec(module, None, origin=sys.argv[0])
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert describe_environment()["command"] == [*said, "final", "xrays-128"]
