"""Torch with a number of threads, for tests whose results, or whose speed on busy cores, depend on it."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def torch_threads(count: int = 1) -> Iterator[None]:
    """Give back afterwards those that there were: other parts' tests run in the same process."""
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
