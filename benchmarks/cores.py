#!/usr/bin/env python3
"""Private inferences a second on 1, 2, 4, ... cores of one machine, both parties on them, the offline phase included.

    PYTHONPATH=src python -m benchmarks.cores compiled/digits --cores 1,2,4,8,16 --seconds 20 -o cores.json
    PYTHONPATH=src python -m benchmarks.cores compiled/digits --cores 8 --apart --group 16 -o cores.json

Server and clients run on the first N cores only. The server has a worker process for each (`sphynx serve
--processes`, one process on one core), the clients are twice as many processes of one thread each; each prepares a
bundle, uses it, holds the logits against the integer oracle's, and begins again. Before them one client alone: the
online latency of a server that is not busy. No torch is needed; the folder is one of `sphynx compile`. `--apart` gives
the clients as many cores of their own, as if they were another machine; with `--group N` they prepare N bundles at
once, and use them before they prepare the next.

Inferences a second are counted while all clients ask: what one has done of its last inference by then counts as a part.
`speedup` is against the first row. CPU seconds are those of the server's processes, per inference, with the clients'
first and uncounted ones in them. `bound` is what the hardware gives without a server (`cores_bound.py`), `estimated`
what `sphynx estimate --rate` computes from rates that are measured at the start of the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cores_bound import bound, durable_write_s
from sphynx.bench.calibrate import measure_rates
from sphynx.bench.machine import describe_machine
from sphynx.bench.throughput_clients import Asked, run_clients
from sphynx.core import limit_cores
from sphynx.program.backends import Backend
from sphynx.program.folder import load_compiled, load_program
from sphynx.program.interpret import interpret
from sphynx.program.ir import Program
from sphynx.protocol.capacity import party_seconds
from sphynx.service.client import Client
from sphynx.service.local import LocalServer, make_local_keys, running_server
from sphynx.service.settings import Limits
from sphynx.system import cpu_seconds_of


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
    """A process and its children, by what each process says of its parent: every kernel has that."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for parent in found:
        found += [child for child, its_parent in parents.items() if its_parent == parent]
    return found


def cpu_s(pid: int) -> float:
    return sum(cpu_seconds_of(one) or 0.0 for one in tree(pid))


def memory_bytes(pid: int) -> dict[str, int] | None:
    """`unique` leaves out what processes share; `all` counts shared pages once, by their parts. None: not known."""
    if not Path("/proc/self/smaps_rollup").exists():  # an emulated kernel
        return None
    found = {"unique": 0, "all": 0}
    for one in tree(pid):
        fields = dict(line.split(":", 1) for line in Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()[1:])
        found["all"] += 1024 * int(fields["Pss"].split()[0])
        found["unique"] += 1024 * sum(int(fields[name].split()[0]) for name in ("Private_Clean", "Private_Dirty"))
    return found


def measure(asked: argparse.Namespace, cores: int) -> dict[str, Any]:
    folder = asked.folder
    program, weights = load_compiled(folder)
    processes, clients = asked.processes or cores, asked.clients or 2 * cores
    pixels = np.random.default_rng(0).integers(0, 256, (1, *program.image)).astype(np.uint8)
    expected = interpret(program, weights, pixels)
    limits = Limits(
        workers=max(2, cores), connections=clients + 8, images_per_hour=10**9, message_s=600.0, queue_s=300.0
    )
    with (
        tempfile.TemporaryDirectory(prefix="sphynx-cores-", dir=asked.state) as temporary,
        running_server(folder, Path(temporary), clients=clients, limits=limits, processes=processes) as server,
    ):
        if asked.apart:
            os.sched_setaffinity(0, asked.allowed[cores : 2 * cores])  # the clients, which are started from here on
        ask = partial(
            run_clients,
            OneThread(server),
            backend=asked.backend,
            pixels=pixels[0],
            expected=expected[0],
            group=asked.group,
        )
        _use, alone = ask(count=1, seconds=asked.seconds / 4)
        before_s = cpu_s(server.pid)
        _use, together = ask(count=clients, seconds=asked.seconds)
        done = sum(len(one.latencies_s) for one in together) + clients * asked.group
        return {
            "cores": cores,
            "processes": processes,
            "clients": clients,
            "group": asked.group,
            "apart": asked.apart,
            **summary(together),
            "online_alone_s": statistics.median(alone[0].online_s),
            "offline_alone_s": statistics.median(alone[0].offline_s),
            "server_cpu_s": (cpu_s(server.pid) - before_s) / done,
            "server_memory_bytes": memory_bytes(server.pid),
            "equal_to_oracle": all(one.equal_to_oracle for one in (*alone, *together)),
        }


def estimated(program: Program, backend: Backend) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="sphynx-rates-") as folder:
        rates = measure_rates(make_local_keys(Path(folder) / "keys").open_channel)
    server_s, client_s = party_seconds(program, rates, backend)
    return {
        "server_cpu_s": server_s,
        "client_cpu_s": client_s,
        "inferences_per_s_and_core": 1 / (server_s + client_s),
    }


def done_by(one: Asked, until_s: float) -> float:
    """How many inferences a client had done by then, the last one in part."""
    left_s, done = until_s - one.start_s, 0.0
    for latency_s in one.latencies_s:
        done += min(1.0, max(0.0, left_s / latency_s))
        left_s -= latency_s
    return done


def summary(asked: list[Asked]) -> dict[str, Any]:
    online = sorted(seconds for one in asked for seconds in one.online_s)
    start_s, end_s = min(one.start_s for one in asked), min(one.end_s for one in asked)
    return {
        "seconds": end_s - start_s,
        "inferences": len(online),
        "inferences_per_s": sum(done_by(one, end_s) for one in asked) / (end_s - start_s),
        "online_s": statistics.median(online),
        "online_p95_s": online[int(0.95 * (len(online) - 1))],
        "offline_s": statistics.median(seconds for one in asked for seconds in one.offline_s),
        "client_cpu_s": sum(one.cpu_s for one in asked) / len(online),
        "bytes_per_inference": asked[0].offline_bytes + asked[0].online_bytes,
    }


def line(row: dict[str, Any]) -> str:
    bounds = ", ".join(f"{name} {value:.2f}x" for name, value in row.get("bound_speedup", {}).items())
    return (
        f"{row['cores']:3} cores{' for each party' * row['apart']}, {row['processes']} processes, "
        f"{row['clients']} clients: "
        f"{row['inferences_per_s']:.2f} a second ({row['speedup']:.2f}x), online {1e3 * row['online_s']:.1f} ms, "
        f"alone {1e3 * row['online_alone_s']:.1f} ms; bound: {bounds or 'not measured'}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of sphynx compile")
    parser.add_argument("--cores", default="1,2,4,8,16", help="those beyond the machine's are left out")
    parser.add_argument("--processes", type=int, default=0, help="of the server; as many as cores unless given")
    parser.add_argument("--clients", type=int, default=0, help="twice the cores unless given")
    parser.add_argument("--backend", choices=("gc", "gmw"), default="gmw")
    parser.add_argument("--group", type=int, default=1, help="bundles that a client prepares at once")
    parser.add_argument("--apart", action="store_true", help="as many cores again for the clients")
    parser.add_argument("--seconds", type=float, default=20.0, help="of each row")
    parser.add_argument("--bound-seconds", type=float, default=2.0, help="of each row and kind of bound; 0: none")
    parser.add_argument("--state", type=Path, help="where both parties keep their bundles; a temporary folder else")
    parser.add_argument("-o", "--out", type=Path)
    asked = parser.parse_args()
    asked.allowed = allowed = sorted(os.sched_getaffinity(0))
    rows: list[dict[str, Any]] = []
    program = load_program(asked.folder)
    found = {
        "machine": describe_machine().to_json(),
        "program": program.name or asked.folder.name,
        "estimated": estimated(program, asked.backend),
        "backend": asked.backend,
        "durable_write_s": durable_write_s(Path(asked.state or tempfile.gettempdir())),
        "rows": rows,
    }
    for cores in (int(word) for word in asked.cores.split(",")):
        if cores * (1 + asked.apart) > len(allowed):
            continue
        os.sched_setaffinity(0, allowed[:cores])  # the processes that are started inherit it
        row = measure(asked, cores)
        row["speedup"] = row["inferences_per_s"] / rows[0]["inferences_per_s"] if rows else 1.0
        if asked.bound_seconds:
            row["bound"] = bound(cores, asked.bound_seconds)
            first = (rows or [row])[0]["bound"]
            row["bound_speedup"] = {name: value / first[name] for name, value in row["bound"].items()}
        rows.append(row)
        print(line(row), file=sys.stderr, flush=True)
        if asked.out:  # after each row: whoever stops this early has those before
            asked.out.write_text(json.dumps(found, indent=2) + "\n")
    os.sched_setaffinity(0, allowed)
    print(json.dumps(found, indent=2))
    sys.exit(0 if rows and all(row["equal_to_oracle"] for row in rows) else 1)


if __name__ == "__main__":
    main()
