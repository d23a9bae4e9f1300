"""The image of deploy/Dockerfile, built and asked for a private answer, where something builds and runs images."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sphynx
from tests.deploy.containers import BASE, tool_here
from tests.service.authority import make_authority
from tests.service.processes import ROOT
from tests.service.tiny import save_tiny

IMAGE = "localhost/sphynx-test"


@pytest.mark.slow
def test_the_image_serves_and_answers(tmp_path: Path) -> None:
    tool = tool_here()
    if tool is None:
        pytest.skip(f"no podman, docker or buildah here runs a program of {BASE}")
    tool.build(ROOT / "deploy" / "Dockerfile", ROOT, IMAGE)
    keys, state = make_authority(tmp_path / "keys"), tmp_path / "state"
    save_tiny(tmp_path / "program")
    state.mkdir()
    volumes = (f"{tmp_path}/program:/program:ro", f"{keys}/server:/keys:ro", f"{state}:/state")
    serves = ("sphynx", "serve", "/program", "--keys", "/keys", "--state", "/state", "--listen", "127.0.0.1:0")
    with tool.command(IMAGE, volumes) as words:
        tool.do(*words[1:], "sphynx", "doctor")
        server = subprocess.Popen([*words, *serves, "--metrics", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True)
        try:
            assert server.stderr is not None
            while '"serving"' not in (line := server.stderr.readline()):
                assert line, "it ended before it served"
            address = f"127.0.0.1:{json.loads(line)['port']}"
            image = np.random.default_rng(0).integers(0, 256, (1, 4, 4), np.uint8)
            with sphynx.Client(address, keys=keys / "alice", state=tmp_path / "bundles") as client:
                answer = client.infer(image)
            assert np.array_equal(answer.logits, sphynx.Compiled.load(tmp_path / "program").infer(image[None])[0])
        finally:
            server.terminate()
            server.communicate()
