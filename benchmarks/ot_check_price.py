"""Measure what the checks of a client's OTs add to the offline phase: CPU time and bytes, with them and without.

    OMP_NUM_THREADS=1 python -m benchmarks.ot_check_price stream-cifar100-25k sphynx-cifar100-25k --repeat 7

Both parties run in this process, each way on a connection of its own, by turns; CPU time is that of both, and the
ratios are of neighbouring bundles. So the numbers compare on a busy machine, too. docs/symmetric-core.md has them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import Any
from unittest.mock import patch

from sphynx.compiler.derive import derive_weights
from sphynx.core import ot
from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.cost.ot_messages import SOFTSPOKEN_PARAMETER, blocks_down
from sphynx.program.folder import load_program
from sphynx.protocol import ots, relu_gc
from sphynx.protocol.channel import local_pair
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.zoo.shipped import folder_of

TIMEOUT_S = 600.0


@contextmanager
def without_checks() -> Iterator[None]:
    """Let both parties extend OTs without any check, which nobody but benchmarks and attacks may want."""
    off = {"checked": False}

    def unchecked(honest: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments, **named: honest(*arguments, **named | off)

    with ExitStack() as patches:
        for name in ("setup_blocks", "message_blocks"):
            patches.enter_context(patch.object(ot, name, unchecked(getattr(ot, name))))
        for kind in (ot.OtReceiver, ot.OtSender):
            patches.enter_context(patch.object(kind, "__init__", unchecked(kind.__init__)))
        patches.enter_context(patch.object(ots, "_DOWN_BLOCKS", ot.setup_blocks(SOFTSPOKEN_PARAMETER, checked=True)))
        base_blocks = blocks_down(ot.BASE_OTS, random_choices=False)
        patches.enter_context(patch.object(ots, "_UP_BASE_BLOCKS", base_blocks))
        relu_gc.messages.cache_clear()
        yield
    relu_gc.messages.cache_clear()


class Parties:
    """A connection whose bundles are counted and timed."""

    def __init__(self, model: ServerModel, backend: Backend, pool: ThreadPoolExecutor) -> None:
        server_end, self._channel = local_pair(timeout_s=TIMEOUT_S)
        self._backend, self._pool = backend, pool
        self._server = InferenceServer(model, server_end)
        self._client = InferenceClient(model.program, self._channel)

    def prepare(self) -> tuple[float, int]:
        """(CPU seconds of both parties, bytes) of one bundle."""
        bundle_id, start_s = os.urandom(16), time.process_time()
        served = self._pool.submit(self._server.prepare, bundle_id, self._backend)
        self._client.prepare(bundle_id, self._backend)
        served.result()
        return time.process_time() - start_s, self._channel.take_record().total().bytes


def measure(model: ServerModel, backend: Backend, repeats: int) -> str:
    """A row of the table."""
    ways: tuple[Callable[[], AbstractContextManager[None]], ...] = (nullcontext, without_checks)
    with ThreadPoolExecutor(1) as pool:
        parties = [Parties(model, backend, pool) for _ in ways]
        for way, both in zip(ways, parties, strict=True):
            with way():
                both.prepare()  # with the set-up
        measured: list[list[tuple[float, int]]] = []
        for number in range(repeats):
            found = [(0.0, 0), (0.0, 0)]
            for which in (0, 1) if number % 2 else (1, 0):
                with ways[which]():
                    found[which] = parties[which].prepare()
            measured.append(found)
    (with_s, without_s) = (statistics.median(each[which][0] for each in measured) for which in (0, 1))
    ratios = sorted(on[0] / off[0] - 1 for on, off in measured)
    with_bytes, without_bytes = (measured[-1][which][1] for which in (0, 1))
    return (
        f"| {backend} | {without_s:.2f} | {with_s:.2f} | {100 * statistics.median(ratios):+.1f} % "
        f"({100 * ratios[0]:+.1f} .. {100 * ratios[-1]:+.1f}) | {without_bytes:,} | {with_bytes:,} | "
        f"{100 * (with_bytes / without_bytes - 1):+.2f} % |"
    )


def main() -> None:
    parse = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parse.add_argument("names", nargs="+", help="Models by name.")
    parse.add_argument("--repeat", type=int, default=7, help="Pairs of bundles; medians are over these.")
    told = parse.parse_args()
    row = partial(print, flush=True)
    row("| network | backend | CPU s without | with | added (range) | bytes without | with | added |")
    row("|---|---|---|---|---|---|---|---|")
    for name in told.names:
        folder = folder_of(name)
        program = load_program(folder / "program")
        model = ServerModel(program, derive_weights(folder, folder / "program", program), threads=1)
        for backend in BACKENDS:
            row(f"| {name} {measure(model, backend, told.repeat)}")


if __name__ == "__main__":
    main()
