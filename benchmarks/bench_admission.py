#!/usr/bin/env python3
"""How many honest clients get in while strangers of the same address come at a given rate.

    PYTHONPATH=src python -m benchmarks.bench_admission                              # some 80 seconds
    PYTHONPATH=src python -m benchmarks.bench_admission --rates 100 --seconds 5 --json

A stranger connects and then says nothing (`silent`), or sends a ClientHello and then nothing (`hello`, which costs the
server its part of the handshake). Strangers are a process of their own that keeps its connections open. Clients come
one after the other; one is in when it has shaken hands and got the program. Everything stays on 127.0.0.1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import socket
import ssl
import statistics
import tempfile
import time
from collections import deque
from multiprocessing.synchronize import Event
from pathlib import Path

import numpy as np

from sphynx.errors import SphynxError
from sphynx.program.folder import save_program, save_weights
from sphynx.program.ir import INPUT, Linear, Program, Term
from sphynx.service.local import HOST, LocalServer, running_server
from sphynx.space.tally import Shape

HELD = 600  # connections that the strangers keep open: more than the server has places and its queue
TICK_S = 0.005
SETTLE_S = 2.5  # before clients are counted: longer than the server is patient


def save_smallest_program(folder: Path) -> None:
    program = Program(Shape(1, 4, 4), (Linear("logits", (Term(INPUT, 4, 4),), Shape(2, 1, 1), 0, 24),), 24, 8)
    save_program(folder, program)
    kinds = {name: np.int64 if name.endswith("/bias") else np.int8 for name in program.weight_shapes}
    save_weights(folder, program, {name: np.ones(program.weight_shapes[name], kind) for name, kind in kinds.items()})


def client_hello() -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    sent = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent).do_handshake()
    return sent.read()


def come(port: int, rate: float, words: bytes, stop: Event, made: multiprocessing.Queue[int]) -> None:
    """Connects `rate` times a second until `stop`; reports how many connections there were."""
    held: deque[socket.socket] = deque()
    mute: list[socket.socket] = []  # what they have to say is not said yet
    start_s, count = time.monotonic(), 0
    while not stop.is_set():
        while count < rate * (time.monotonic() - start_s):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex((HOST, port))
            held.append(sock)
            mute += [sock] if words else []
            count += 1
            if len(held) > HELD:
                held.popleft().close()
        mute = [sock for sock in mute if not has_said(sock, words)]
        time.sleep(min(TICK_S, 0.5 / rate))
    made.put(count)


def has_said(sock: socket.socket, words: bytes) -> bool:
    try:
        sock.send(words)
    except (BlockingIOError, InterruptedError):  # not connected yet
        return False
    except OSError:  # sent away, or closed here
        return True
    return True


def attempt(server: LocalServer) -> float | None:
    """Seconds until a client was in; None if it was not let in."""
    start_s = time.monotonic()
    try:
        with server.client():
            return time.monotonic() - start_s
    except SphynxError:
        return None


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(server: LocalServer, kind: str, rate: float, seconds: float) -> dict[str, object]:
    stop = multiprocessing.Event()
    made: multiprocessing.Queue[int] = multiprocessing.Queue()
    words = client_hello() if kind == "hello" else b""
    strangers = multiprocessing.Process(target=come, args=(server.port, rate, words, stop, made), daemon=True)
    start_s = time.monotonic()
    if rate:
        strangers.start()
        time.sleep(SETTLE_S)
    waits: list[float | None] = []
    counted_from_s, cpu_from_s = time.monotonic(), cpu_seconds(server.pid)
    while time.monotonic() - counted_from_s < seconds:
        waits.append(attempt(server))
    server_cores = (cpu_seconds(server.pid) - cpu_from_s) / (time.monotonic() - counted_from_s)
    came = 0
    if rate:
        stop.set()
        came = made.get(timeout=10)
        strangers.join()
    got_in = [wait for wait in waits if wait is not None]
    return {
        "strangers": kind if rate else "none",
        "asked_per_s": rate,
        "came_per_s": round(came / (time.monotonic() - start_s)),
        "server_cores": round(server_cores, 2),
        "attempts": len(waits),
        "got_in": len(got_in),
        "median_ms": round(1000 * statistics.median(got_in), 1) if got_in else None,
        "slowest_ms": round(1000 * max(got_in), 1) if got_in else None,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rates", default="10,100,1000", help="strangers per second")
    parser.add_argument("--seconds", type=float, default=8.0, help="for each row")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    cases = [("none", 0.0)]
    cases += [(kind, float(rate)) for kind in ("silent", "hello") for rate in asked.rates.split(",")]
    rows = []
    for kind, rate in cases:
        with tempfile.TemporaryDirectory() as folder:
            save_smallest_program(Path(folder) / "compiled")
            with running_server(Path(folder) / "compiled", Path(folder)) as server:
                rows.append(measure(server, kind, rate, asked.seconds))
        if not asked.json:
            print("  ".join(f"{name} {value}" for name, value in rows[-1].items()), flush=True)
    if asked.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
