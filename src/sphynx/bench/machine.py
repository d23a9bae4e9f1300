"""The machine that a number was measured on, and how: the best of several runs."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from importlib import metadata

from sphynx.bench.results import Machine
from sphynx.core import _native, cpu_features
from sphynx.threads import available_cores
from sphynx.version import __version__

PACKAGES = ("numpy", "tenseal", "torch")


def describe_machine() -> Machine:
    """Call it before measuring: `load_average` should be the others' load, not the benchmark's own."""
    features = cpu_features()
    return Machine(
        architecture=platform.machine(),
        system=platform.platform(),
        cores=available_cores(),
        cpu_features=tuple(features.available),
        aes_path=features.aes_path,
        rlwe_path=_native.rlwe.path(),
        load_average=tuple(round(load, 2) for load in os.getloadavg()),
        versions={
            "sphynx": __version__,
            "python": platform.python_version(),
            **{package: installed_version(package) for package in PACKAGES},
        },
    )


def installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def best_seconds(work: Callable[[], object], repeats: int, *, threads: int = 1) -> float:
    """The best of several runs, because other work on the machine only slows them down; after one that is not counted.

    One thread is timed by its CPU time, so that waiting for a turn does not count; several by the wall clock.
    """
    clock = time.thread_time if threads == 1 else time.perf_counter
    work()
    best = float("inf")
    for _ in range(repeats):
        started = clock()
        work()
        best = min(best, clock() - started)
    return max(best, 1e-9)  # the clock's step: work that is shorter has no rate
