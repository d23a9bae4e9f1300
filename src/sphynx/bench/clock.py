"""The time of one piece of work: the best of several runs, because other work on the machine only slows them down."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_seconds(work: Callable[[], object], repeats: int, *, threads: int = 1) -> float:
    """After one run that is not counted. One thread is timed by its CPU time, so that waiting for a turn does not
    count; several by the wall clock."""
    clock = time.thread_time if threads == 1 else time.perf_counter
    work()
    best = float("inf")
    for _ in range(repeats):
        started = clock()
        work()
        best = min(best, clock() - started)
    return max(best, 1e-9)  # the clock's step: work that is shorter has no rate
