"""The image of deploy/Dockerfile, built and asked for a private answer, where something builds images."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import sphynx
from tests.service.authority import make_authority
from tests.service.processes import ROOT
from tests.service.tiny import save_tiny

TOOL = next((tool for tool in ("podman", "docker") if shutil.which(tool)), None)
IMAGE = "localhost/sphynx-test"


def do(*words: str) -> subprocess.CompletedProcess[str]:
    assert TOOL is not None
    return subprocess.run([TOOL, *words], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(TOOL is None, reason="neither podman nor docker is installed")
def test_the_image_serves_and_answers(tmp_path: Path) -> None:
    if do("pull", "docker.io/library/python:3.12-slim").returncode:
        pytest.skip("the image that it is built from cannot be fetched")
    built = do("build", "--file", str(ROOT / "deploy" / "Dockerfile"), "--tag", IMAGE, str(ROOT))
    assert built.returncode == 0, built.stdout + built.stderr
    keys, state = make_authority(tmp_path / "keys"), tmp_path / "state"
    save_tiny(tmp_path / "program")
    state.mkdir()
    mounts = [
        f"--volume={tmp_path}/program:/program:ro",
        f"--volume={keys}/server:/keys:ro",
        f"--volume={state}:/state",
    ]
    user = f"--user={os.getuid()}:{os.getgid()}"
    serves = ("serve", "/program", "--keys", "/keys", "--state", "/state", "--listen", "127.0.0.1:0")
    assert TOOL is not None
    server = subprocess.Popen(
        [TOOL, "run", "--rm", "--network=host", user, *mounts, IMAGE, *serves, "--metrics", "127.0.0.1:0"],
        stderr=subprocess.PIPE,
        text=True,
    )
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
