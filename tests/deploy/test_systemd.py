"""deploy/systemd: a unit that systemd reads without complaint, little exposed, with options that `sphynx serve` has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from sphynx.cli.main import app
from tests.service.processes import ROOT

UNIT = ROOT / "deploy" / "systemd" / "sphynx.service"
INSTALLED = "/opt/sphynx/bin/sphynx"
MOST_EXPOSURE = 2.0  # of 10; what is left is the network, which it is there for


def command() -> list[str]:
    (line,) = (line for line in UNIT.read_text().splitlines() if line.startswith("ExecStart="))
    return line.removeprefix("ExecStart=").split()


def analyze(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    return subprocess.run(["systemd-analyze", *map(str, arguments)], capture_output=True, text=True, check=False)


def test_its_command_is_one_of_sphynx_serve() -> None:
    program, verb, *arguments = command()
    known = {option for one in get_command(app).commands["serve"].params for option in one.opts}  # type: ignore[attr-defined]
    assert (program, verb) == (INSTALLED, "serve")
    assert {word for word in arguments if word.startswith("--")} <= known


def test_systemd_reads_it(tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(INSTALLED, sys.executable))  # one that is there
    done = analyze("verify", unit)
    assert done.returncode == 0 and UNIT.name not in done.stderr, done.stderr


def test_it_is_little_exposed() -> None:
    done = analyze("security", "--offline=true", f"--threshold={int(10 * MOST_EXPOSURE)}", UNIT)
    assert done.returncode == 0, done.stdout
