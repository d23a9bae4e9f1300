#!/usr/bin/env python3
"""Private inferences a second on 1, 2, 4, ... cores of one machine, both parties on them, the offline phase included.

    PYTHONPATH=src python benchmarks/cores.py compiled/digits --cores 1,2,4,8,16 --seconds 20 -o cores.json

Server and clients run on the first N cores only. The server has a worker process for each (`sphynx serve
--processes`, one process on one core), the clients are twice as many processes of one thread each; each prepares a
bundle, uses it, holds the logits against the integer oracle's, and begins again. Then one client alone: the online
latency of a server that is not busy. No torch is needed; the folder is one of `sphynx compile`.

`speedup` is of inferences a second against the first row. CPU seconds are those of the server's processes, per
inference, with the clients' first and uncounted ones in them; on hardware threads 2 "cores" are less than twice one.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sphynx.bench.machine import cpu_seconds_of, describe_machine
from sphynx.bench.throughput_clients import Asked, run_clients
from sphynx.core import limit_cores
from sphynx.program.backends import Backend
from sphynx.program.files import load_program
from sphynx.program.interpret import interpret
from sphynx.program.weights import load_weights
from sphynx.service.admission import Limits
from sphynx.service.client import Client
from sphynx.service.local import LocalServer, running_server


@dataclass(frozen=True)
class OneThread:
    """A running server whose clients have one thread each: what they ask on one machine, many would ask from many."""

    server: LocalServer

    @property
    def pid(self) -> int:
        return self.server.pid

    def client(self, number: int) -> Client:
        limit_cores(1)
        return self.server.client(number)


def tree(pid: int) -> list[int]:
    """A process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(found for child in children for found in tree(int(child)))]


def cpu_s(pid: int) -> float:
    return sum(cpu_seconds_of(one) or 0.0 for one in tree(pid))


def memory_bytes(pid: int) -> dict[str, int]:
    """`unique` leaves out what processes share; `all` counts shared pages once, by their parts."""
    found = {"unique": 0, "all": 0}
    for one in tree(pid):
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()[1:])
        found["all"] += 1024 * int(fields["Pss"].split()[0])
        found["unique"] += 1024 * sum(int(fields[name].split()[0]) for name in ("Private_Clean", "Private_Dirty"))
    return found


def measure(folder: Path, backend: Backend, cores: int, processes: int, clients: int, seconds: float) -> dict[str, Any]:
    program = load_program(folder)
    pixels = np.random.default_rng(0).integers(0, 256, (1, *program.image)).astype(np.uint8)
    expected = interpret(program, load_weights(folder, program), pixels)
    limits = Limits(
        workers=max(2, cores), connections=clients + 8, images_per_hour=10**9, message_s=600.0, queue_s=300.0
    )
    with (
        tempfile.TemporaryDirectory(prefix="sphynx-cores-") as temporary,
        running_server(folder, Path(temporary), clients=clients, limits=limits, processes=processes) as server,
    ):
        before_s = cpu_s(server.pid)
        _use, asked = run_clients(OneThread(server), clients, backend, pixels[0], expected[0], seconds)
        return {
            "cores": cores,
            "processes": processes,
            "clients": clients,
            **summary(asked),
            "server_cpu_s": (cpu_s(server.pid) - before_s) / (sum(len(one.latencies_s) for one in asked) + clients),
            "server_memory_bytes": memory_bytes(server.pid),
        }


def summary(asked: list[Asked]) -> dict[str, Any]:
    online = sorted(seconds for one in asked for seconds in one.online_s)
    window_s = max(one.end_s for one in asked) - min(one.start_s for one in asked)
    return {
        "seconds": window_s,
        "inferences": len(online),
        "inferences_per_s": len(online) / window_s,
        "online_s": statistics.median(online),
        "online_p95_s": online[int(0.95 * (len(online) - 1))],
        "offline_s": statistics.median(seconds for one in asked for seconds in one.offline_s),
        "client_cpu_s": sum(one.cpu_s for one in asked) / len(online),
        "bytes_per_inference": asked[0].offline_bytes + asked[0].online_bytes,
        "equal_to_oracle": all(one.equal_to_oracle for one in asked),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of sphynx compile")
    parser.add_argument("--cores", default="1,2,4,8,16", help="those beyond the machine's are left out")
    parser.add_argument("--processes", type=int, default=0, help="of the server; as many as cores unless given")
    parser.add_argument("--clients", type=int, default=0, help="twice the cores unless given")
    parser.add_argument("--relu", choices=("gc", "gmw"), default="gmw")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each row")
    parser.add_argument("-o", "--out", type=Path)
    asked = parser.parse_args()
    allowed = sorted(os.sched_getaffinity(0))
    rows: list[dict[str, Any]] = []
    for cores in (int(word) for word in asked.cores.split(",")):
        if cores > len(allowed):
            continue
        os.sched_setaffinity(0, allowed[:cores])  # the processes that are started inherit it
        processes = asked.processes or cores
        row = measure(asked.folder, asked.relu, cores, processes, asked.clients or 2 * cores, asked.seconds)
        alone = measure(asked.folder, asked.relu, cores, processes, 1, asked.seconds / 4)
        row["online_alone_s"] = alone["online_s"]
        row["speedup"] = row["inferences_per_s"] / rows[0]["inferences_per_s"] if rows else 1.0
        rows.append(row)
        print(
            f"{cores:3} cores, {processes} processes, {row['clients']} clients: {row['inferences_per_s']:.2f} a second"
            f" ({row['speedup']:.2f}x), online {1e3 * row['online_s']:.1f} ms, alone {1e3 * alone['online_s']:.1f} ms",
            file=sys.stderr,
            flush=True,
        )
    os.sched_setaffinity(0, allowed)
    found = {
        "machine": describe_machine().to_json(),
        "program": load_program(asked.folder).name,
        "backend": asked.relu,
        "rows": rows,
    }
    text = json.dumps(found, indent=2)
    if asked.out:
        asked.out.write_text(text + "\n")
    print(text)
    sys.exit(0 if rows and all(row["equal_to_oracle"] for row in rows) else 1)


if __name__ == "__main__":
    main()
