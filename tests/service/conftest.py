"""Keys for the tests of the service."""

from pathlib import Path

import pytest

from tests.service.authority import make_authority


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_authority(tmp_path_factory.mktemp("keys") / "keys")
