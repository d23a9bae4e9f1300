"""Many clients for minutes: `make soak MINUTES=5`, or `python -m tests.chaos.soak --minutes 5 --clients 64`.

The server as a process, and the clients as threads of some processes, each with keys, bundles and a connection of
its own. Every client prepares one bundle, uses it, checks the answer, and begins again. Memory, file descriptors and
threads of all processes are read from /proc once everybody has been served (start) and before the clients leave (end);
those of the server once more when they are gone. Exit code 1 if a bound is passed: BOUNDS says which there are.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from statistics import median, quantiles
from threading import Lock, Thread

import numpy as np

from sphynx.program.interpret import interpret
from sphynx.service.local import LocalServer, running_server
from sphynx.service.settings import Limits
from tests.service.tiny import save_tiny

PROCESSES = 4
WARM_UP = 0.2  # of the time: allocators and caches reach their level
ROUND_S = 300.0  # for a client to be served, at the slowest
USED = ("memory_mb", "descriptors", "threads")
BOUNDS = {
    "memory growth": "10 % and 16 MB",
    "descriptors, threads": "8 more at the end than at the start",
    "after the clients left": "16 descriptors and 4 threads above the level before they came",
    "latency": "the last quarter's median at most 2.5 times the first's",
    "share": "the busiest client has at most 2 times the inferences of the slowest",
    "wrong answers, failed clients, ended processes": "none",
}


def usage(pid: int) -> dict[str, float]:
    """Nothing of a process that has ended: it has no memory any more, and no entry once it was waited for."""
    try:
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        descriptors = len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return dict.fromkeys(USED, 0.0)
    memory_mb = int(fields.get("VmRSS", "0 kB").split()[0]) / 1024
    return dict(zip(USED, (memory_mb, descriptors, int(fields["Threads"])), strict=True))


def ask_on(server: LocalServer, compiled: Path, numbers: range, stop: Event, found: Queue[str]) -> None:
    """One process of clients: tells the queue of every inference, (client, when, seconds), and of every failure."""
    program, weights = save_tiny(compiled)
    telling = Lock()

    def tell(**line: object) -> None:
        with telling:
            found.put(json.dumps(line))

    def ask(number: int) -> None:
        dice = np.random.default_rng(number)
        try:
            with server.client(number) as client:
                while not stop.is_set():
                    pixels = dice.integers(0, 256, (1, 4, 4), np.uint8)
                    client.prepare(1, backend="gmw" if number % 2 else "gc")
                    start_s = time.monotonic()
                    answer = client.infer(pixels).integer_logits
                    seconds = time.monotonic() - start_s
                    is_right = np.array_equal(answer, interpret(program, weights, pixels[None])[0])
                    tell(client=number, at_s=start_s, seconds=seconds, is_right=bool(is_right))
        except Exception as error:
            tell(client=number, failure=f"{type(error).__name__}: {error}")

    threads = [Thread(target=ask, args=(number,)) for number in numbers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def soak(folder: Path, clients: int, minutes: float, *, is_timed: bool) -> int:
    save_tiny(folder / "compiled")
    limits = Limits(workers=2, connections=clients + 8, images_per_hour=1 << 30, quota_bytes=1 << 30, queue_s=ROUND_S)
    context = multiprocessing.get_context("spawn")
    found: Queue[str] = context.Queue()
    stop = context.Event()
    with running_server(folder / "compiled", folder, clients=clients, limits=limits) as server:
        before = usage(server.pid)
        asking = [
            context.Process(
                target=ask_on, args=(server, folder / f"compiled-{at}", range(at, clients, PROCESSES), stop, found)
            )
            for at in range(PROCESSES)
        ]
        for process in asking:
            process.start()
        lines: list[dict[str, float]] = []

        def are_gone() -> bool:
            return not any(process.is_alive() for process in asking)

        def are_served() -> bool:
            return len({line["client"] for line in lines}) == clients

        gather(found, lines, until=lambda: are_served() or are_gone(), wait_s=ROUND_S)
        if are_gone():
            sys.exit("all clients have ended before they were served")
        gather(found, lines, wait_s=60 * minutes * WARM_UP)
        pids = {"server": server.pid, **{f"clients {at}": process.pid or 0 for at, process in enumerate(asking)}}
        start, start_s = {name: usage(pid) for name, pid in pids.items()}, time.monotonic()
        gather(found, lines, wait_s=60 * minutes * (1 - WARM_UP))
        end, end_s = {name: usage(pid) for name, pid in pids.items()}, time.monotonic()
        stop.set()
        gather(found, lines, until=are_gone, wait_s=ROUND_S)
        for process in asking:
            process.join()
        time.sleep(2.0)  # connections are closed by threads
        after = usage(server.pid)
    measured = [line for line in lines if start_s <= line.get("at_s", 0.0) < end_s]
    return show(before, start, end, after, measured, lines, clients, end_s - start_s, is_timed)


def gather(
    found: Queue[str], lines: list[dict[str, float]], *, wait_s: float, until: Callable[[], bool] = lambda: False
) -> None:
    """Reads on for so long, or until something is true."""
    deadline = time.monotonic() + wait_s
    while time.monotonic() < deadline and not until():
        while not found.empty():
            lines.append(json.loads(found.get()))
        time.sleep(0.05)


def show(
    before: dict[str, float],
    start: dict[str, dict[str, float]],
    end: dict[str, dict[str, float]],
    after: dict[str, float],
    measured: list[dict[str, float]],
    lines: list[dict[str, float]],
    clients: int,
    seconds: float,
    is_timed: bool,
) -> int:
    passed: list[str] = []
    print(f"{'process':12}{'':14}{'start':>10}{'end':>10}")
    for name in start:
        for what, limit in (
            ("memory_mb", 1.1 * start[name]["memory_mb"] + 16),
            ("descriptors", start[name]["descriptors"] + 8),
            ("threads", start[name]["threads"] + 8),
        ):
            print(f"{name:12}{what:14}{start[name][what]:10.0f}{end[name][what]:10.0f}")
            passed += [f"{name}: {what}"] if end[name][what] > limit else []
        passed += [] if end[name]["memory_mb"] else [f"{name}: ended"]
    print(f"{'server':12}before the clients {_in_words(before)}; after they left {_in_words(after)}")
    passed += ["server: descriptors that stay"] if after["descriptors"] > before["descriptors"] + 16 else []
    passed += ["server: threads that stay"] if after["threads"] > before["threads"] + 4 else []
    waits = [line["seconds"] for line in sorted(measured, key=lambda line: line["at_s"])]
    if len(waits) > 1:
        quarter = max(1, len(waits) // 4)
        first, last = 1e3 * median(waits[:quarter]), 1e3 * median(waits[-quarter:])
        p95 = 1e3 * quantiles(waits, n=20)[-1]
        print(f"latency     median {first:.1f} ms at the start, {last:.1f} ms at the end; 95 % {p95:.1f} ms")
        passed += ["latency"] if is_timed and last > 2.5 * first else []
    else:
        passed += ["no inferences"]
    shares = [sum(line["client"] == number for line in measured) for number in range(clients)]
    print(f"shares      {min(shares)} to {max(shares)} inferences each, {max(shares) / max(1, min(shares)):.2f} times")
    passed += ["shares"] if is_timed and max(shares) > 2 * min(shares) else []
    wrong = sum(not line.get("is_right", True) for line in lines)
    failures = [line["failure"] for line in lines if "failure" in line]
    print(
        f"inferences  {len(measured):,} of {clients} clients in {seconds:.0f} s, {wrong} wrong, {len(failures)} failed"
    )
    passed += ["wrong answers"] if wrong else []
    passed += [f"failed: {failures[0]}"] if failures else []
    print("bounds      " + ("kept" if not passed else f"passed: {', '.join(passed)}"))
    return 1 if passed else 0


def _in_words(used: dict[str, float]) -> str:
    return f"{used['memory_mb']:.0f} MB, {used['descriptors']:.0f} descriptors, {used['threads']:.0f} threads"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--no-timing", action="store_true", help="without bounds on latency and shares: a short run")
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sphynx-soak-"))
    try:
        sys.exit(soak(folder, asked.clients, asked.minutes, is_timed=not asked.no_timing))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
