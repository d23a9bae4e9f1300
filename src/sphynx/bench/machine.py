"""The machine that a number was measured on, and how: the best of several runs, what a process has used.

What another process has used is read from /proc, so on Linux only.
"""

from __future__ import annotations

import os
import platform
import resource
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

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


def peak_memory_bytes() -> int:
    """Peak memory of this program image. ru_maxrss would still remember the larger parent that it was forked from."""
    return _peak_memory_bytes("self") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def peak_memory_bytes_of(pid: int) -> int | None:
    return _peak_memory_bytes(str(pid))


def cpu_seconds_of(pid: int) -> float | None:
    """CPU seconds of all threads of a process, also those that have ended; None where the system does not say."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    user, system = text.rpartition(")")[2].split()[11:13]  # the name before may hold spaces
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def _peak_memory_bytes(pid: str) -> int | None:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)
