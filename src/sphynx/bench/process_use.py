"""What a process has used: memory at its peak, CPU time. By /proc, so of another process on Linux only."""

from __future__ import annotations

import os
import resource
from pathlib import Path


def peak_memory_bytes() -> int:
    """Of this program image. ru_maxrss would still remember the larger parent that it was forked from."""
    return _peak_memory_bytes("self") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def peak_memory_bytes_of(pid: int) -> int | None:
    return _peak_memory_bytes(str(pid))


def cpu_seconds_of(pid: int) -> float | None:
    """Of all its threads, those that have ended too; None where the system does not say."""
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
