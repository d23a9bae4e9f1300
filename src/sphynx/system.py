"""Ask the operating system for what Python's portable part lacks. Only here, and only when it is used.

locks on open files     flock: Linux and macOS. The kernel gives them back when their process ends, however it ends
what a boot is called, what is mounted, what a process used    /proc: Linux; elsewhere nothing is known
memory as a folder      /dev/shm: Linux
memory that is sealed, one core for a thread                   Linux, and only a server asks for them
"""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path
from typing import Protocol

from sphynx.errors import MissingPartError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
MOUNTS = Path("/proc/self/mountinfo")  # proc(5)
SHARED_MEMORY = Path("/dev/shm")
_PROCESSES = Path("/proc")


class _HasDescriptor(Protocol):
    def fileno(self) -> int: ...


def lock(file: int | _HasDescriptor) -> None:
    """Lock an open file against all other openings of it, in any process; wait until that is possible."""
    _flock(file, "LOCK_EX")


def try_lock(file: int | _HasDescriptor, *, shared: bool = False) -> bool:
    """Lock an open file unless another holds it; `shared`: any number of such locks go together."""
    try:
        _flock(file, "LOCK_SH" if shared else "LOCK_EX", "LOCK_NB")
    except BlockingIOError:
        return False
    return True


def unlock(file: int | _HasDescriptor) -> None:
    _flock(file, "LOCK_UN")


def _flock(file: int | _HasDescriptor, *kinds: str) -> None:
    try:
        import fcntl
    except ModuleNotFoundError:
        raise MissingPartError(
            "this system has no locks on files (flock), and without them a bundle could be used twice",
            remedy="Run Sphynx on Linux or macOS.",
        ) from None
    fcntl.flock(file, sum(getattr(fcntl, kind) for kind in kinds))


def boot_id() -> str:
    """Name the machine's last start; "unknown" where the system does not."""
    return BOOT_ID.read_text().strip() if BOOT_ID.exists() else "unknown"


def mounts() -> list[str]:
    """List what is mounted in the words of proc(5); nothing where the system does not say."""
    return MOUNTS.read_text().splitlines() if MOUNTS.exists() else []


def make_sealed_memory(name: str, size: int) -> int:
    """Make a file in memory that `seal` can make unchangeable; the caller closes the descriptor."""
    descriptor = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        os.ftruncate(descriptor, size)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def seal(descriptor: int) -> None:
    """Let nobody change the memory any more; refused while a writable mapping of it is left."""
    import fcntl

    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, _all_seals())


def is_sealed(descriptor: int) -> bool:
    import fcntl

    return fcntl.fcntl(descriptor, fcntl.F_GET_SEALS) & _all_seals() == _all_seals()


def _all_seals() -> int:
    import fcntl

    return fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE


def unread_bytes(sock: socket.socket) -> int:
    """Count what has arrived and was not read yet. Unlike a peek this never waits."""
    import fcntl
    import termios

    try:
        (count,) = struct.unpack("i", fcntl.ioctl(sock, termios.FIONREAD, bytes(4)))
    except (OSError, ValueError):  # closed by another thread just now
        return 0
    return int(count)


def can_pin_threads() -> bool:
    """Return whether a thread can be given one core."""
    return hasattr(os, "sched_setaffinity")


def peak_memory_bytes() -> int:
    """Peak memory of this program image; what getrusage says would still remember the larger parent of a fork."""
    return peak_memory_bytes_of("self") or _largest_resident_bytes()


def peak_memory_bytes_of(pid: int | str) -> int | None:
    """Peak memory of another process; None where the system does not say."""
    try:
        lines = (_PROCESSES / str(pid) / "status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


def _largest_resident_bytes() -> int:
    import resource
    import sys

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024  # macOS counts bytes


def cpu_seconds_of(pid: int) -> float | None:
    """CPU seconds of all threads of a process, also those that have ended; None where the system does not say."""
    try:
        text = (_PROCESSES / str(pid) / "stat").read_text()
    except OSError:
        return None
    user, system = text.rpartition(")")[2].split()[11:13]  # the name before may hold spaces
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
