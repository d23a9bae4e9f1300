"""The commands of docs/getting-started.md, as they are written there, with a smaller network and free ports.

Blocks marked `sh` are run in order in one folder. A line that ends with `&` is the server: the test waits until it
says that it serves, as a reader would, and `kill %1` ends it.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sphynx.program.folder import load_program, load_weights
from sphynx.program.interpret import interpret
from sphynx.service.pictures import read_picture
from sphynx.service.prediction import ranked
from sphynx.units import percent
from tests.warm_process import Warm

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "getting-started.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ADDRESS = "127.0.0.1:7443"
SMALLER = {
    "--relu-budget 500": "--relu-budget 256 --set training.epochs=1",
    "serve compiled/digits": "serve compiled/digits --listen 127.0.0.1:0 --metrics 127.0.0.1:0",
}


class Shell:
    """One folder, and at most one server in the background."""

    def __init__(self, folder: Path, warm: Warm) -> None:
        self.folder, self.environment = folder, warm.environment
        self.address = ADDRESS
        self.server: subprocess.Popen[str] | None = None
        self.said: list[tuple[str, subprocess.CompletedProcess[str]]] = []

    def do(self, line: str) -> None:
        for written, smaller in SMALLER.items():
            line = line.replace(written, smaller)
        line = line.replace(ADDRESS, self.address)
        if line.endswith("&"):
            self._serve(line.removesuffix("&"))
        elif line == "kill %1":
            assert self.stop() == 0
        else:
            ran = subprocess.run(
                line, shell=True, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
            )
            assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"
            self.said.append((line, ran))

    def _serve(self, line: str) -> None:
        assert self.server is None
        self.server = subprocess.Popen(
            f"exec {line}", shell=True, cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True
        )
        assert self.server.stderr is not None
        first = self.server.stderr.readline()
        assert '"serving"' in first, first + self.server.stderr.read()
        self.address = f"127.0.0.1:{json.loads(first)['port']}"

    def stop(self) -> int:
        if self.server is None:
            return 0
        server, self.server = self.server, None
        server.terminate()
        self.log = [json.loads(line) for line in server.communicate()[1].splitlines()]
        return server.returncode


@pytest.fixture
def shell(tmp_path: Path, warm: Warm) -> Iterator[Shell]:
    opened = Shell(tmp_path, warm)
    yield opened
    opened.stop()


def commands() -> list[str]:
    return [line for block in BLOCK.findall(PAGE.read_text()) for line in block.splitlines()]


def test_the_page_leads_to_a_private_answer(shell: Shell) -> None:
    lines = commands()
    assert all(any(written in line for line in lines) for written in (*SMALLER, ADDRESS))
    for line in lines:
        shell.do(line)

    program = load_program(shell.folder / "compiled" / "digits")
    pixels = read_picture(shell.folder / "digit.png", program)
    logits = interpret(program, load_weights(shell.folder / "compiled" / "digits", program), pixels[None])[0]
    labels, probabilities = ranked(program, logits)
    answers = [ran for line, ran in shell.said if "infer digit.png" in line]
    for ran in answers:
        assert re.search(rf"digit\.png\W+{labels[0]}\W+{percent(probabilities[0])}", ran.stdout), ran.stdout
    prepared = next(ran for line, ran in shell.said if "--prepare 4" in line)
    assert "4 bundles are ready" in prepared.stderr
    assert "3 bundles are ready" in answers[-1].stderr
    events = [entry["event"] for entry in shell.log]
    assert (events.count("prepared"), events.count("inferred"), events[-1]) == (5, 2, "stopped")
