"""Test-wide settings: no hypothesis deadlines, because correctness must not depend on how busy the machine is."""

import os
from collections.abc import Iterator

import pytest
import typer.testing
from hypothesis import settings

from tests.warm_process import Warm, built_once

# Before torch is loaded: on a busy machine its threads should sleep while they wait, not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Runs of tests can be packed as models while the code is being changed.
os.environ["SPHYNX_COMMIT"] = "0123456789ab"

# `make test` runs the same examples everywhere; `--hypothesis-profile explore`, in `make test-all`, draws new ones.
settings.register_profile("sphynx", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("sphynx")


@pytest.fixture(scope="session")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warm]:
    """A process in which commands start without importing torch each time."""
    opened = Warm(tmp_path_factory.mktemp("warm"))
    yield opened
    opened.close()


@pytest.fixture(autouse=True, scope="session")
def commands_built_once() -> Iterator[None]:
    """For all tests that call `app`, or `main`, which calls it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", built_once)
        patch.setattr(typer.Typer, "__call__", lambda app, *words, **options: built_once(app)(*words, **options))
        yield
