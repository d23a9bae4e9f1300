"""Keys, and a scene whose server process does not outlive the test."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.authority import make_authority
from tests.service.scene import Scene
from tests.warm_process import Warm


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_authority(tmp_path_factory.mktemp("keys") / "keys")


@pytest.fixture
def scene(tmp_path: Path, authority: Path, warm: Warm) -> Iterator[Scene]:
    scene = Scene(tmp_path, authority, warm)
    yield scene
    scene.server.stop(signal.SIGKILL)
