"""One thread for the whole of training's tests: results repeat bit for bit, and busy cores hurt less."""

from collections.abc import Iterator

import pytest

from tests.torch_threads import torch_threads


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with torch_threads(1):
        yield
