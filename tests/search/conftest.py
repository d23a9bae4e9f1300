"""Searches here are tiny: a second thread costs more than it does. Restored for the tests of other parts."""

from collections.abc import Iterator

import pytest
import torch

from sphynx.network.backend import fast_convolutions


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with fast_convolutions(torch.device("cpu")):
        yield
    torch.set_num_threads(before)
