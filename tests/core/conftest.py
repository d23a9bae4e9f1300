"""Every test that asks for `path` runs on the CPU's fastest path and on the portable one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from sphynx.core import _native


@pytest.fixture(params=["fastest", "portable"])
def path(request: pytest.FixtureRequest) -> Iterator[str]:
    _native.force_portable_for_tests(request.param == "portable")
    yield _native.aes_path()
    _native.force_portable_for_tests(False)
