#!/usr/bin/env python3
"""Online latency of one client while others have bundles made, all on this machine.

    PYTHONPATH=src python -m benchmarks.ahead compiled/digits --refills 2 --inferences 100 -o ahead.json

Three rows, `rounds` times in turn, with the same server: `quiet`, nothing else; `ahead`, that many other clients whose
bundles are made ahead, with what the server has to spare; `urgent`, the same clients' bundles as ordinary preparations.
The client that is timed has prepared its bundles before, and waits a moment between questions. No torch is needed.

With `--server-cores N` the server has the first N cores, the client that is timed the next one and the others the rest,
as if they were machines of their own; without it all compete for all cores.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.bench.machine import describe_machine
from sphynx.bench.workers import tell, told_by, values_of, workers
from sphynx.program.backends import Backend
from sphynx.program.folder import load_program, load_weights
from sphynx.program.interpret import interpret
from sphynx.service.local import LocalServer, running_server
from sphynx.service.settings import Limits
from sphynx.service.yielding import on_one_core

PAUSE_S = 0.02
NICENESS = 10
ROWS = ("quiet", "ahead", "urgent")


def keep_to(cores: list[int]) -> None:
    if cores:
        os.sched_setaffinity(0, cores)


def refill(told: Connection, server: LocalServer, cores: list[int], number: int, backend: Backend, ahead: bool) -> int:
    """Make bundles until something is said; return how many were made."""
    keep_to(cores)
    made = 0
    if ahead:
        os.nice(NICENESS)  # as sphynx infer --ahead
    with server.client(number) as client, on_one_core():
        client.prepare(1, backend=backend, ahead=ahead)
        told.send(("done", None))
        while not told.poll():
            client.prepare(1, backend=backend, ahead=ahead)
            made += 1
    return made


def ask(
    told: Connection,
    server: LocalServer,
    cores: list[int],
    backend: Backend,
    pixels: NDArray[np.uint8],
    expected: NDArray[np.int64],
    count: int,
) -> list[float]:
    """Seconds of each inference, with bundles that are there when the others begin."""
    keep_to(cores)
    with server.client(0) as client:
        client.prepare(count + 1, backend=backend)
        client.infer(pixels)
        told.send(("done", None))
        told.recv()
        found = []
        for _ in range(count):
            client.warm()
            time.sleep(PAUSE_S)
            prediction = client.infer(pixels)
            assert np.array_equal(prediction.integer_logits, expected)
            found.append(prediction.online_seconds)
    return found


def measure(server: LocalServer, row: str, asked: argparse.Namespace, question: tuple[Any, Any]) -> dict[str, Any]:
    mine, others_cores = client_cores(asked)
    asking = (ask, server, mine, asked.backend, *question, asked.inferences)
    refills = (
        []
        if row == "quiet"
        else [(refill, server, others_cores, n + 1, asked.backend, row == "ahead") for n in range(asked.refills)]
    )
    with workers(asking) as (end,):
        values(told_by(end))
        with workers(*refills) as others:
            values(*map(told_by, others))
            tell(end, "go")
            start_s = time.monotonic()
            (online,) = values(told_by(end))
            took_s = time.monotonic() - start_s
            for other in others:
                tell(other, "stop")
            made = sum(values(*map(told_by, others)))
    return {"row": row, "online_s": online, "bundles_per_s": made / took_s}


def client_cores(asked: argparse.Namespace) -> tuple[list[int], list[int]]:
    """Cores of the client that is timed, and of the others; empty for all."""
    first = asked.server_cores
    return (asked.allowed[first : first + 1], asked.allowed[first + 1 :]) if first else ([], [])


def values(*told: tuple[str, Any]) -> list[Any]:
    return values_of(told, where="benchmarks/ahead.py", remedy="Run it again with fewer --refills.")


def summary(row: str, parts: list[dict[str, Any]]) -> dict[str, Any]:
    online = np.array([seconds for part in parts for seconds in part["online_s"]])
    return {
        "row": row,
        "inferences": len(online),
        "online_p50_s": float(np.quantile(online, 0.5)),
        "online_p95_s": float(np.quantile(online, 0.95)),
        "online_p99_s": float(np.quantile(online, 0.99)),
        "bundles_per_s": float(np.mean([part["bundles_per_s"] for part in parts])),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of sphynx compile")
    parser.add_argument("--refills", type=int, default=2, help="other clients")
    parser.add_argument("--inferences", type=int, default=50, help="of each row in each round")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--processes", type=int, default=1, help="of the server")
    parser.add_argument("--backend", choices=("gc", "gmw"), default="gmw")
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--server-cores", type=int, default=0, help="two fewer than the machine has, at most")
    asked = parser.parse_args()
    asked.allowed = sorted(os.sched_getaffinity(0))
    keep_to(asked.allowed[: asked.server_cores] if asked.server_cores else [])  # the server inherits it
    program, machine = load_program(asked.folder), describe_machine().to_json()
    pixels = np.random.default_rng(0).integers(0, 256, (1, *program.image)).astype(np.uint8)
    expected = interpret(program, load_weights(asked.folder, program), pixels)
    limits = Limits(
        connections=asked.refills + 8,
        images_per_hour=10**9,
        bundles_per_client=256,
        quota_bytes=1 << 40,
        message_s=600.0,
        online_message_s=60.0,
        queue_s=300.0,
    )
    parts: list[dict[str, Any]] = []
    with (
        tempfile.TemporaryDirectory(prefix="sphynx-ahead-") as temporary,
        running_server(
            asked.folder, Path(temporary), clients=asked.refills + 1, limits=limits, processes=asked.processes
        ) as server,
    ):
        for _ in range(asked.rounds):
            for row in ROWS:
                parts.append(measure(server, row, asked, (pixels[0], expected[0])))
                print(json.dumps(summary(row, parts[-1:])), file=sys.stderr, flush=True)
    rows = [summary(row, [part for part in parts if part["row"] == row]) for row in ROWS]
    found = {
        "machine": machine,
        "program": program.name,
        "refills": asked.refills,
        "processes": asked.processes,
        "server_cores": asked.server_cores,
        "rows": rows,
    }
    text = json.dumps(found, indent=2)
    if asked.out:
        asked.out.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
