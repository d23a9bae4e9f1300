"""The comparison of two builds runs, here of one with itself, and has a row for each way."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from benchmarks import two_builds

from tests.service.tiny import save_tiny


def test_a_build_is_compared_with_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save_tiny(tmp_path / "compiled")
    python = tmp_path / "before/.venv/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    asked = [str(tmp_path / "before"), str(tmp_path / "compiled"), "--group", "2", "--repeat", "1"]
    monkeypatch.setattr(sys, "argv", ["two_builds", *asked])
    two_builds.main()
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in capsys.readouterr().out.splitlines()]
    silently = ["group of 2, silent down", "group of 2, silent OT"]
    assert [row[1] for row in rows[2:]] == ["earlier, alone", "alone", "group of 2", *silently]
    assert rows[2][2] == rows[3][2]  # as many bytes
