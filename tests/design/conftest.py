"""A design trains too, and is tested with one thread as training is. What its forecast says hardly matters here."""

from collections.abc import Iterator

import pytest

from sphynx.design import timing
from tests.train.conftest import one_thread

__all__ = ["brief_timing", "one_thread"]


@pytest.fixture(autouse=True, scope="session")
def brief_timing() -> Iterator[None]:
    """A forecast makes the fewest calls of what it times, instead of half a second of them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timing, "ENOUGH_SECONDS", 0.0)
        yield
