"""A kept result says where it ran."""

from __future__ import annotations

import sys

import pytest

from sphynx.run.environment import describe_environment


def test_a_command_is_named_without_its_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are kept, shown and shared; the folder that a program is installed in is a person's own."""
    monkeypatch.setattr(sys, "argv", ["/home/somebody/env/bin/sphynx", "bench", "private", "-o", "out.json"])
    assert describe_environment()["command"] == ["sphynx", "bench", "private", "-o", "out.json"]
