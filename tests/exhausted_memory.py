"""Starts one thread in a process that has hardly any memory left, for several amounts of it: a line for each.

`python exhausted_memory.py worker|thread`: by our `Worker` or by Python's `Thread`. A line is what became of it: "ran",
"died" (it never began), "refused" or "hangs".
"""

from __future__ import annotations

import os
import resource
import signal
import sys
import threading
from itertools import repeat
from pathlib import Path

from sphynx.threads import Worker

PATIENCE_S = 60  # a busy machine is slow, too
SIZES_BYTES = (1 << 20, 1 << 16, 4096, 1024, 512, 256, 128, 64, 32, 16)
ENDINGS = ("ran", "died", "refused", "hangs")


def main(kind: str) -> None:
    for left in range(0, 128, 16):
        child = os.fork()
        if not child:
            os.close(2)  # tracebacks of threads without memory
            start_one(kind, left)
        print(ENDINGS[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])])


def start_one(kind: str, left: int) -> None:
    """With the memory of `left` small objects."""
    first = threading.Thread(target=int)  # its stack stays, so that the next thread has one
    first.start()
    first.join()
    signal.signal(signal.SIGALRM, lambda *_: os._exit(ENDINGS.index("hangs")))
    second = threading.Thread(target=int)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize(),) * 2)
    signal.alarm(PATIENCE_S)
    dropped = repeat(None, left)  # made while there is memory: a slice would need some
    kept = everything()
    for _ in dropped:
        kept.pop()
    try:
        if kind == "thread":
            second.start()
            os._exit(ENDINGS.index("ran"))
        worker = Worker(lambda: None)
        worker.join()
    except (MemoryError, RuntimeError):
        os._exit(ENDINGS.index("refused"))
    os._exit(ENDINGS.index("ran" if worker.has_begun else "died"))


def everything() -> list[bytes]:
    kept: list[bytes] = []
    for size_bytes in SIZES_BYTES:
        try:
            while True:
                kept.append(bytes(size_bytes))
        except MemoryError:
            pass
    return kept


if __name__ == "__main__":
    main(sys.argv[1])
