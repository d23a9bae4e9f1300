"""Measure what the hardware itself gives on N cores: N processes that share nothing and wait for nobody.

`products`: the core's RLWE products on a few weights that stay in a core's caches. `streamed`: the same on weights that
do not, as in a server, where every product reads its own. The speedups of the two are what a server's is to be held
against: hardware threads of one core share its arithmetic, all cores share the memory, and a clock that is higher for
one busy core than for all of them makes the first row look good. `durable_write_s` is what a ledger waits for.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from sphynx.bench.workers import tell, told_by, values_of, workers
from sphynx.core import Prg, _native
from sphynx.core import rlwe as he

RING_BITS = 32
INPUTS, CACHED_REPLIES, STREAMED_REPLIES = 2, 2, 400
WRITES, PAGE_BYTES = 50, 4096


def bound(cores: int, seconds: float) -> dict[str, float]:
    """Products a second of all processes together; each is timed by its own clock."""
    found = {}
    for name, replies in (("products", CACHED_REPLIES), ("streamed", STREAMED_REPLIES)):
        with workers(*((_multiply, replies, seconds) for _ in range(cores))) as ends:
            _values(map(told_by, ends))
            for end in ends:
                tell(end, "go")
            found[f"{name}_per_s"] = sum(_values(map(told_by, ends)))
    return found


def durable_write_s(folder: Path) -> float:
    """The median of appending a page to a file and waiting for the disk."""
    taken = []
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(WRITES):
            start_s = time.perf_counter()
            file.write(bytes(PAGE_BYTES))
            file.flush()
            os.fsync(file.fileno())
            taken.append(time.perf_counter() - start_s)
    return statistics.median(taken)


def _multiply(told: Connection, replies: int, seconds: float) -> float:
    native, prg, params = _native.rlwe, Prg(), he.Params.for_ring(RING_BITS)
    key, rng = native.SecretKey(params, prg), np.random.default_rng(0)
    messages = rng.integers(0, 2**RING_BITS, (INPUTS, params.n), np.uint64)
    inputs = native.Ciphertexts(params, key.encrypt(messages, prg, 1), INPUTS, 1)
    weights = native.Weights(params, replies, INPUTS, params.n)
    polynomials = rng.integers(-127, 128, (INPUTS, params.n)).astype(np.int32)
    for reply in range(replies):
        weights.set_reply(reply, polynomials, 1)
    native.time_products(weights, [inputs], 1)
    told.send(("done", 0.0))
    told.recv()
    start_s, done = time.monotonic(), 0
    while time.monotonic() < start_s + seconds:
        native.time_products(weights, [inputs], 1)
        done += replies * INPUTS
    return done / (time.monotonic() - start_s)


def _values(told: Any) -> list[float]:
    return values_of(told, where="benchmarks/cores.py", remedy="Run it again on fewer cores.")
