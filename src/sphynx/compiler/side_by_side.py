"""Calls on many images side by side, one on each core, in which libraries start no threads of their own.

Their threads would wait for one another after each layer, and use up to three times as much of the CPU where another
program wants it as well. What is computed does not depend on how many calls run at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from threadpoolctl import ThreadpoolController


class Map(Protocol):
    def __call__(self, call: Callable[..., Any], /, *items: Iterable[Any]) -> Iterator[Any]: ...


@contextmanager
def side_by_side() -> Iterator[Map]:
    """Yield a `map` whose calls run at the same time, as many as numpy may use threads, and whose results are in order;
    calls that have not begun when the block is left are dropped."""
    libraries = ThreadpoolController().select(user_api="blas")
    threads = max((library["num_threads"] for library in libraries.info()), default=1)
    pool = ThreadPoolExecutor(threads, "sphynx-compile")
    with libraries.limit(limits=1):
        try:
            yield pool.map
        finally:
            pool.shutdown(cancel_futures=True)
