"""The operator's walk of docs/serving.md: every command as it is written there, with free ports."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.docs.test_getting_started import BLOCK, ROOT
from tests.service.tiny import save_tiny
from tests.warm_process import Warm

PAGE = ROOT / "docs" / "serving.md"
LISTEN, METRICS = "127.0.0.1:7443", "127.0.0.1:9464"
SERVING = re.compile(r"(?: --listen (?P<listen>\S+))? --metrics (?P<metrics>\S+)")


class Terminal:
    """A shell in one folder whose jobs are servers; what the page calls an address is where they really listen."""

    def __init__(self, folder: Path, warm: Warm) -> None:
        self.folder, self.environment = folder, warm.environment
        self.places: dict[str, str] = {}
        self.jobs: list[subprocess.Popen[str]] = []
        self.said: list[tuple[str, str]] = []

    def do(self, line: str) -> None:
        if line.endswith("&"):
            self._serve(line.removesuffix("&"))
        elif line.startswith("kill %"):
            job = self.jobs[int(line.removeprefix("kill %")) - 1]
            job.terminate()
            _, log = job.communicate()
            assert job.returncode == 0, log
        else:
            for written, real in self.places.items():
                line = line.replace(written, real)
            ran = subprocess.run(
                ["bash", "-c", line],
                cwd=self.folder,
                env=self.environment,
                capture_output=True,
                text=True,
                check=False,
            )
            assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"
            self.said.append((line, ran.stdout + ran.stderr))

    def _serve(self, line: str) -> None:
        found = SERVING.search(line)
        assert found is not None
        line = line.replace(found[0], " --listen 127.0.0.1:0 --metrics 127.0.0.1:0")
        job = subprocess.Popen(
            f"exec {line}", shell=True, cwd=self.folder, env=self.environment, stderr=subprocess.PIPE, text=True
        )
        self.jobs.append(job)
        assert job.stderr is not None
        while '"serving"' not in (said := job.stderr.readline()):
            assert job.poll() is None and said, said + job.stderr.read()
        ports = json.loads(said)
        self.places[found["listen"] or LISTEN] = f"127.0.0.1:{ports['port']}"
        self.places[found["metrics"]] = f"127.0.0.1:{ports['metrics_port']}"

    def close(self) -> None:
        for job in self.jobs:
            if job.poll() is None:
                job.kill()
                job.communicate()


@pytest.fixture
def terminal(tmp_path: Path, warm: Warm) -> Iterator[Terminal]:
    opened = Terminal(tmp_path, warm)
    yield opened
    opened.close()


@pytest.mark.slow
@pytest.mark.skipif(not all(map(shutil.which, ("curl", "openssl"))), reason="needs curl and openssl")
def test_the_walk_leads_from_no_keys_to_a_revoked_client(terminal: Terminal) -> None:
    save_tiny(terminal.folder / "compiled" / "digits")
    for name, size in (("digit", (4, 4)), ("photo", (32, 32, 3))):
        picture = np.random.default_rng(0).integers(0, 256, size, np.uint8)
        Image.fromarray(picture).save(terminal.folder / f"{name}.png")
    lines = [line for block in BLOCK.findall(PAGE.read_text()) for line in block.splitlines()]
    assert len(lines) > 30
    for line in lines:
        terminal.do(line)
    said = dict(terminal.said)
    (metrics,) = (text for line, text in said.items() if line.startswith("curl") and "grep" in line)
    programs = dict(re.findall(r'program_info\{name="([^"]+)",program="(\w+)"', metrics))
    assert set(programs) == {"digits", "stream-cifar100-12k"}
    for program in programs.values():
        assert re.search(rf'inferences_total\{{[^}}]*program="{program}"[^}}]*\}} 1$', metrics, re.MULTILINE)
    refused = next(text for line, text in said.items() if line.startswith("! sphynx infer"))
    assert "revoked" in refused
