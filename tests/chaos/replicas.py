"""Three replicas that share nothing, under load: `python -m tests.chaos.replicas --clients 24 --seconds 60`.

One is killed (SIGKILL) after a quarter of the time and started again at half of it; another is stopped as a rolling
restart does (SIGTERM, then started again) at five eighths. The clients, threads of some processes, have keys and
bundles of their own, list all three, and ask on: each prepares a bundle, uses it, and checks the answer. Both parties
write every bundle that goes into an inference to one file.

Prints JSON. Exit code 1 where an answer is wrong, a bundle served twice, a client ended, or an inference was lost that
was not running at a replica that went down: after each event every client of that replica may lose the one it ran.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np

from sphynx.api.asking import Client
from sphynx.errors import ConnectionLostError, PeerGaveUpError
from sphynx.program.interpret import interpret
from sphynx.service import keys
from tests.service.fault_process import audit
from tests.service.processes import ServerProcess, used_twice
from tests.service.tiny import save_tiny

REPLICAS, SHARED_NAME, HOST = 3, "sphynx.example", "127.0.0.1"
PROCESSES = 4
PATIENCE_S = 120.0
KILLED, RESTARTED = 0, 1
AT = {"kill": 0.25, "back": 0.5, "restart": 0.625}  # parts of the time


@dataclass(frozen=True)
class Asking:
    """The task of one process of clients; plain values."""

    servers: tuple[str, ...]
    folder: Path
    numbers: range

    def run(self, stop: Event, found: Queue[str]) -> None:
        audit(str(self.folder / "audit"))
        program, weights = save_tiny(self.folder / f"compiled-{self.numbers.start}")
        telling = Lock()

        def tell(**line: object) -> None:
            with telling:
                found.put(json.dumps({"at_s": time.monotonic(), **line}))

        def ask(number: int) -> None:
            dice = np.random.default_rng(number)
            client = Client(
                self.servers,
                keys=self.folder / "keys" / f"client-{number}",
                timeout_s=PATIENCE_S,
                wait_s=PATIENCE_S,
                warn=lambda why: tell(client=number, warning=why),
            )
            with client:
                while not stop.is_set():
                    pixels = dice.integers(0, 256, (1, 4, 4), np.uint8)
                    phase = "preparation"
                    try:
                        if not client.ready:
                            client.prepare(1, backend="gmw" if number % 2 else "gc")
                        phase = "inference"
                        answer = client.infer(pixels).integer_logits
                    except (ConnectionLostError, PeerGaveUpError) as error:
                        tell(client=number, lost=phase, server=str(client._place), why=str(error))
                        continue
                    is_right = np.array_equal(answer, interpret(program, weights, pixels[None])[0])
                    tell(client=number, server=str(client._place), is_right=bool(is_right))

        def ask_and_tell(number: int) -> None:
            try:
                ask(number)
            except Exception as error:
                tell(client=number, ended=f"{type(error).__name__}: {error}")

        threads = [Thread(target=ask_and_tell, args=(number,)) for number in self.numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def start_replicas(folder: Path, clients: int) -> list[ServerProcess]:
    save_tiny(folder / "compiled")
    keys.init(folder / "keys")
    for number in range(clients):
        keys.issue(folder / "keys", f"client-{number}", days=1)
    flags = ("--hourly", "1000000", "--connections", str(clients + 8), "--timeout", str(PATIENCE_S))
    return [
        ServerProcess(
            folder / "compiled",
            keys.issue(folder / "keys", f"replica-{at}", hosts=[HOST, SHARED_NAME], days=1),
            folder / f"state-{at}",
            folder / "audit",
            flags=flags,
        ).start()
        for at in range(REPLICAS)
    ]


def run(folder: Path, clients: int, seconds: float) -> dict[str, Any]:
    replicas = start_replicas(folder, clients)
    context = multiprocessing.get_context("spawn")
    found: Queue[str] = context.Queue()
    stop = context.Event()
    servers = tuple(f"{HOST}:{replica.port}" for replica in replicas)
    asking = [
        context.Process(target=Asking(servers, folder, range(at, clients, PROCESSES)).run, args=(stop, found))
        for at in range(min(PROCESSES, clients))
    ]
    lines: list[dict[str, Any]] = []
    try:
        for process in asking:
            process.start()
        deadline = time.monotonic() + PATIENCE_S
        while len({line["client"] for line in lines}) < clients and time.monotonic() < deadline:
            gather(found, lines, time.monotonic() + 0.05)
        start_s = time.monotonic()
        times = {name: start_s + part * seconds for name, part in AT.items()}
        gather(found, lines, times["kill"])
        replicas[KILLED].stop(signal.SIGKILL)
        gather(found, lines, times["back"])
        replicas[KILLED].start()
        gather(found, lines, times["restart"])
        code = replicas[RESTARTED].stop()
        replicas[RESTARTED].start()
        restarted_s = time.monotonic()
        gather(found, lines, max(start_s + seconds, restarted_s + 0.25 * seconds))
        end_s = time.monotonic()
        stop.set()
        while any(process.is_alive() for process in asking):
            gather(found, lines, time.monotonic() + 0.05)
        gather(found, lines, time.monotonic() + 0.05)
    finally:
        for process in asking:
            process.kill()
            process.join()
        for replica in replicas:
            replica.stop(signal.SIGKILL)
    measured = [line for line in lines if start_s <= line["at_s"] < end_s]
    return account(folder, servers, lines, measured, clients, end_s - start_s, code)


def gather(found: Queue[str], lines: list[dict[str, Any]], until_s: float) -> None:
    while time.monotonic() < until_s:
        while not found.empty():
            lines.append(json.loads(found.get()))
        time.sleep(0.02)


def account(
    folder: Path,
    servers: tuple[str, ...],
    lines: list[dict[str, Any]],
    measured: list[dict[str, Any]],
    clients: int,
    seconds: float,
    code: int,
) -> dict[str, Any]:
    lost = [line for line in lines if line.get("lost") == "inference"]
    by_client = Counter((line["client"], line["server"]) for line in lost)
    used = Counter(line.split()[0] for line in (folder / "audit").read_text().splitlines())
    answers = [line for line in measured if "is_right" in line]
    return {
        "replicas": REPLICAS,
        "clients": clients,
        "seconds": round(seconds, 1),
        "inferences": len(answers),
        "per_second": round(len(answers) / seconds, 1),
        "by_replica": [sum(line["server"] == server for line in answers) for server in servers],
        "wrong": sum(not line["is_right"] for line in lines if "is_right" in line),
        "lost_inferences": {
            "killed": sum(line["server"] == servers[KILLED] for line in lost),
            "restarted": sum(line["server"] == servers[RESTARTED] for line in lost),
            "not_running": sum(line["server"] not in (servers[KILLED], servers[RESTARTED]) for line in lost)
            + sum(times - 1 for times in by_client.values()),
        },
        "interrupted_preparations": sum(line.get("lost") == "preparation" for line in lines),
        "moved_on": sum("warning" in line for line in lines),
        "slowest_gap_s": round(slowest_gap_s(measured), 2),
        "bundle_halves_used": dict(used),
        "bundles_twice": len(used_twice(folder / "audit")),
        "clients_ended": [line["ended"] for line in lines if "ended" in line],
        "rolling_restart_exit_code": code,
    }


def slowest_gap_s(measured: list[dict[str, Any]]) -> float:
    """The longest that a client waited from one answer to the next."""
    last: dict[int, float] = {}
    gap_s = 0.0
    for line in sorted((line for line in measured if "is_right" in line), key=lambda line: line["at_s"]):
        gap_s = max(gap_s, line["at_s"] - last.get(line["client"], line["at_s"]))
        last[line["client"]] = line["at_s"]
    return gap_s


def is_good(found: dict[str, Any]) -> bool:
    return (
        found["inferences"] > 0
        and not (found["wrong"] or found["bundles_twice"] or found["clients_ended"])
        and not found["lost_inferences"]["not_running"]
        and found["rolling_restart_exit_code"] == 0
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=24)
    parser.add_argument("--seconds", type=float, default=60.0)
    asked = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="sphynx-replicas-"))
    try:
        found = run(folder, asked.clients, asked.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(found, indent=2))
    sys.exit(0 if is_good(found) else 1)


if __name__ == "__main__":
    main()
