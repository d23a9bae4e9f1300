"""Calls on many images side by side, one on each core, in which libraries start no threads of their own.

Their threads would wait for one another after each layer, and use up to three times as much of the CPU where another
program wants it as well. What is computed does not depend on how many calls run at once.

BLAS has one number of threads for the whole process: the first block sets it, the last one that is left sets it back.
OpenMP, which torch computes with, has one for each thread that asks: only those of the calls are set, which end here.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Protocol

from threadpoolctl import ThreadpoolController

from sphynx.threads import available_cores

_MOST_BYTES = 4 << 30  # of all calls that run at once


class Map(Protocol):
    def __call__(self, call: Callable[..., Any], /, *items: Iterable[Any]) -> Iterator[Any]: ...


@contextmanager
def side_by_side(call_bytes: int = 0, *, begin: Callable[[], object] = lambda: None) -> Iterator[Map]:
    """Yield a `map` whose calls run at the same time, and whose results are in order; calls that have not begun when
    the block is left are dropped. Each call takes about `call_bytes`; each thread calls `begin` once, at first."""
    with _BLAS_OF_ONE_THREAD:
        pool = ThreadPoolExecutor(calls_at_once(call_bytes), "sphynx-compile", begin)
        try:
            yield pool.map
        finally:
            pool.shutdown(cancel_futures=True)


def calls_at_once(call_bytes: int = 0) -> int:
    """As many as there are cores, or fewer: as OMP_NUM_THREADS says, by which users limit a process, and as fit the
    memory. What limits one library alone, such as OPENBLAS_NUM_THREADS, says nothing of calls."""
    wanted = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()  # those behind are of nested regions
    cores = min(available_cores(), int(wanted)) if wanted.isdecimal() and int(wanted) else available_cores()
    return max(1, min(cores, _MOST_BYTES // max(1, call_bytes)))


def limit_openmp() -> None:
    """Let this thread's parallel regions start no threads, for as long as it lives."""
    ThreadpoolController().select(user_api="openmp").limit(limits=1)


class _BlasOfOneThread:
    """Blocks may overlap, in any order and in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._limit: Any = None

    def __enter__(self) -> None:
        with self._lock:
            if not self._blocks:
                self._limit = ThreadpoolController().select(user_api="blas").limit(limits=1)
            self._blocks += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._blocks -= 1
            if not self._blocks:
                self._limit.restore_original_limits()
                self._limit = None


_BLAS_OF_ONE_THREAD = _BlasOfOneThread()
