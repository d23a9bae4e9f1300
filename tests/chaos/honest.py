"""Honest clients of a server that need not trust them: `python -m tests.chaos.honest --inferences 1000 --kills 40`.

A server in the mode malicious-client, and a client as a process of its own, which prepares bundles one by one, in
groups and for batches, uses them, and checks every answer. Now and then the server, or the client, is killed (SIGKILL)
and started again, or the connection is cut, whatever they do then. Every other client computes on the portable path.

Prints JSON. Exit code 1 where an answer is wrong, a bundle served twice, or an honest client got a strike.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any

import numpy as np

from sphynx.core import _native
from sphynx.errors import BundleRefusedError, ConnectionLostError, NobodyListensError, PeerGaveUpError
from sphynx.program.interpret import interpret
from sphynx.service.client import Client
from sphynx.service.strikes import FILE
from tests.service.authority import make_authority
from tests.service.fault_process import audit
from tests.service.processes import ServerProcess, used_twice
from tests.service.tiny import save_tiny

FLAGS = ("--security", "malicious-client", "--hourly", "1000000")
FAULTS = ("kill server", "kill client", "cut")
RETRY_S = 0.05
PATIENCE_S = 120.0
CUT = signal.SIGUSR1
BATCH = 2


def ask_on(port: int, folder: Path, number: int, found: Connection) -> None:
    """One client process, until it is killed: tells of every batch of answers how many images it had."""
    _native.force_portable_for_tests(number % 2 == 1)
    audit(str(folder / "audit"))
    program, weights = save_tiny(folder / f"client-{number}")
    dice = np.random.default_rng(number)
    connected: list[Client] = []

    def hang_up(*_: object) -> None:
        """In a thread: the one that the signal finds may be inside what hanging up needs."""
        for client in connected:
            threading.Thread(target=client.hang_up).start()

    signal.signal(CUT, hang_up)
    while True:
        try:
            state = folder / "client"
            with Client("127.0.0.1", port, keys=folder / "keys" / "alice", state=state, timeout_s=PATIENCE_S) as client:
                connected[:] = [client]
                while True:
                    images = int(dice.choice((1, 1, 1, BATCH)))
                    if images == 1 and not client.ready and dice.random() < 0.2:
                        client.prepare(client._party.most_together(1))
                    pixels = dice.integers(0, 256, (images, 1, 4, 4), np.uint8)
                    logits = [answer.integer_logits for answer in client.infer_batch(pixels)]
                    is_right = np.array_equal(logits, interpret(program, weights, pixels))
                    found.send({"images": images, "is_right": bool(is_right)})
        except NobodyListensError:  # the server is just starting
            time.sleep(RETRY_S)
        except (ConnectionLostError, PeerGaveUpError, BundleRefusedError) as error:
            found.send({"lost": type(error).__name__, "why": str(error)})
            time.sleep(RETRY_S)


def run(folder: Path, inferences: int, kills: int, seed: int = 0) -> dict[str, Any]:
    save_tiny(folder / "compiled")
    authority = make_authority(folder / "keys")
    server = ServerProcess(
        folder / "compiled", authority / "server", folder / "server", folder / "audit", flags=FLAGS
    ).start()
    context, dice = multiprocessing.get_context("spawn"), random.Random(seed)
    clients, done, reasons, struck_by = 0, Counter[str](), Counter[str](), Counter[str]()
    # The faults are spread over the inferences, not over time: a slow machine has as many.
    left = sorted(dice.sample(range(inferences), min(kills, inferences)))

    def start_client() -> tuple[SpawnProcess, Connection]:
        """A client with a pipe of its own: one that is killed may break what it writes to."""
        heard, tells = context.Pipe(duplex=False)
        process = context.Process(target=ask_on, args=(server.port, folder, clients, tells), daemon=True)
        process.start()
        tells.close()
        return process, heard

    (client, found), start_s = start_client(), time.monotonic()
    try:
        while done["answers"] < inferences:
            assert found.poll(PATIENCE_S), "the client has fallen silent"
            line = found.recv()
            if "lost" in line:
                done["interrupted"] += 1
                reasons[line["why"]] += 1
                continue
            done["answers"] += line["images"]
            done["wrong"] += not line["is_right"]
            if left and done["answers"] > left[0]:
                left.pop(0)
                time.sleep(dice.uniform(0, RETRY_S))  # whatever it does then
                fault = dice.choice(FAULTS)
                struck_by[fault] += 1
                if fault == "kill server":
                    server.stop(signal.SIGKILL)
                    server.start()
                elif fault == "cut":
                    assert client.pid is not None
                    os.kill(client.pid, CUT)
                else:
                    client.kill()
                    client.join()
                    clients += 1
                    client, found = start_client()
    finally:
        client.kill()
        client.join()
        server.stop(signal.SIGKILL)
    return {
        "inferences": done["answers"],
        "seconds": round(time.monotonic() - start_s, 1),
        "faults": dict(struck_by),
        "interrupted": done["interrupted"],
        "why": dict(reasons.most_common(8)),
        "wrong": done["wrong"],
        "bundles_twice": len(used_twice(folder / "audit")),
        "strikes": sum(map(bool, (folder / "server" / FILE).read_text().splitlines())),
    }


def is_good(found: dict[str, Any]) -> bool:
    return not (found["wrong"] or found["bundles_twice"] or found["strikes"])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inferences", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=40, help="faults, spread over the inferences")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    where = Path(tempfile.mkdtemp(prefix="sphynx-honest-"))
    try:
        result = run(where, asked.inferences, asked.kills, asked.seed)
    finally:
        shutil.rmtree(where, ignore_errors=True)
    print(json.dumps(result, indent=1))
    sys.exit(0 if is_good(result) else 1)
