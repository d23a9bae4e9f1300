"""Searches here are tiny: a second thread costs more than it does. Restored for the tests of other parts."""

from collections.abc import Iterator

import pytest
import torch

from sphynx.network.backend import fast_convolutions
from tests.torch_threads import torch_threads


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with torch_threads(1), fast_convolutions(torch.device("cpu")):
        yield
