#!/usr/bin/env python3
"""Measure what a bundle takes offline, alone and in a group, with SoftSpoken and with silent OT: bytes, and CPU time.

    OMP_NUM_THREADS=1 python -m benchmarks.group_bytes stream-cifar100-25k sphynx-cifar100-25k --repeat 3

Networks are names of models or compiled folders. Both parties run in this process, one thread a party, each way on a
connection of its own and by turns; the first preparation has the set-up, whose bytes are listed apart. CPU is that of
both parties, a median, and its ratio that of neighbouring preparations. Every bundle of the last preparation answers,
and has to answer as the oracle.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from sphynx.errors import SphynxError
from sphynx.program.extensions import SILENT, SOFTSPOKEN, Extensions
from sphynx.program.folder import load_compiled
from sphynx.program.interpret import interpret
from sphynx.protocol.bundle import Bundle
from sphynx.protocol.channel import local_pair
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.zoo.by_name import compiled_folder

TIMEOUT_S = 3600.0
WAYS = (SOFTSPOKEN, Extensions("silent", "softspoken"), SILENT)


class Way:
    """A connection on which GMW bundles are prepared in groups of one size, by OTs of one kind."""

    def __init__(self, model: ServerModel, made: Extensions, group: int, pool: ThreadPoolExecutor) -> None:
        server_end, self._channel = local_pair(timeout_s=TIMEOUT_S)
        self.made, self._group, self._pool, self._program = made, group, pool, model.program
        self._server = InferenceServer(model, server_end)
        self._client = InferenceClient(model.program, self._channel, threads=1)
        self._bundles: tuple[list[Bundle], list[Bundle]] = [], []
        self.cpu_s: list[float] = []
        self.sizes: list[int] = []
        self.set_up_bytes = 0

    def prepare(self) -> None:
        ids, start_s = [os.urandom(16) for _ in range(self._group)], time.process_time()
        served = self._pool.submit(self._server.prepare_group, ids, "gmw", 1, self.made)
        asked = self._client.prepare_group(ids, "gmw", 1, self.made)
        self._bundles = served.result(), asked
        self.cpu_s.append((time.process_time() - start_s) / self._group)
        counted = self._channel.take_record()
        self.set_up_bytes += counted.total("setup").bytes
        self.sizes.append(counted.total("offline").bytes // self._group)

    def require_exact(self, model: ServerModel) -> None:
        pixels = np.random.default_rng(1).integers(0, 256, (self._group, *self._program.image), np.uint8)
        expected = interpret(self._program, model.weights, pixels)
        for number, (own, other) in enumerate(zip(*self._bundles, strict=True)):
            served = self._pool.submit(self._server.infer, own)
            logits = self._client.infer(other, pixels[number : number + 1])
            served.result()
            if not np.array_equal(logits[0], expected[number]):
                raise SphynxError(
                    "a private answer differs from the oracle's",
                    where=f"OTs {self.made}",
                    remedy="This is a bug: please report it.",
                )


def measure(name: str, model: ServerModel, repeats: int, groups: list[int], ways: list[Extensions]) -> None:
    most = InferenceClient(model.program, local_pair()[0]).most_together(1)
    for group in sorted({min(size, most) for size in groups}):
        with ThreadPoolExecutor(1) as pool:
            made = [Way(model, way, group, pool) for way in ways]
            for _ in range(repeats + 1):
                for way in made:
                    way.prepare()
            for way in made:
                way.require_exact(model)
                ratios = [own / first for own, first in zip(way.cpu_s[1:], made[0].cpu_s[1:], strict=True)]
                print(
                    f"| {name} | {group} | {way.made} | {statistics.mean(way.sizes) / 1e6:.2f} | "
                    f"{way.set_up_bytes / 1e6:.2f} | {statistics.median(way.cpu_s[1:]):.3f} | "
                    f"{statistics.median(ratios):.2f} ({min(ratios):.2f} .. {max(ratios):.2f}) |",
                    flush=True,
                )


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("networks", nargs="+", help="Compiled folders, or names of models.")
    parse.add_argument("--repeat", type=int, default=3, help="Preparations after the first.")
    parse.add_argument("--groups", default="1,16", help="Bundles in a group; no more than share ciphertexts.")
    parse.add_argument("--silent-only", action="store_true", help="Leave out SoftSpoken.")
    told = parse.parse_args()
    print("| network | bundles | OTs | MB each, offline | MB of set-up | CPU s each | CPU to the first way |")
    print("|---|---|---|---|---|---|---|")
    for name in told.networks:
        folder = compiled_folder(name, partial(print, flush=True))
        model = ServerModel(*load_compiled(folder), threads=1)
        ways = [way for way in WAYS if not told.silent_only or way == SILENT]
        measure(name, model, told.repeat, [int(size) for size in told.groups.split(",")], ways)


if __name__ == "__main__":
    main()
