"""The client processes of a throughput benchmark, which ask a running server without pause.

Each prepares a bundle, or a group of them, uses each for one image, holds the logits against the oracle's, and begins
again until the time is over. The first group, which also makes the session's set-up, is not counted; then all start
together. No torch: a client has none.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sphynx.bench.workers import tell, told_by, values_of, workers
from sphynx.program.backends import Backend
from sphynx.system import cpu_seconds_of, peak_memory_bytes_of


class Answer(Protocol):
    """Read only. Bytes are both directions', counted by the channel with frame headers."""

    @property
    def integer_logits(self) -> NDArray[np.int64]: ...
    @property
    def offline_seconds(self) -> float: ...
    @property
    def online_seconds(self) -> float: ...
    @property
    def offline_bytes(self) -> int: ...
    @property
    def online_bytes(self) -> int: ...


class Asker(Protocol):
    def prepare(self, count: int, *, backend: Backend) -> object: ...

    def infer(self, image: NDArray[np.uint8]) -> Answer: ...


class Serving(Protocol):
    """A server that runs. It is sent to the clients' processes, so it holds plain values only."""

    @property
    def pid(self) -> int: ...

    def client(self, number: int) -> AbstractContextManager[Asker]: ...


@dataclass(frozen=True)
class Asked:
    """Times of one client, on the clock that all processes of a machine share. Latencies are shares of the group's."""

    start_s: float
    latencies_s: list[float]
    offline_s: list[float]
    online_s: list[float]
    cpu_s: float
    offline_bytes: int
    online_bytes: int
    equal_to_oracle: bool

    @property
    def end_s(self) -> float:
        return self.start_s + sum(self.latencies_s)

    @property
    def inferences_per_s(self) -> float:
        return len(self.latencies_s) / sum(self.latencies_s)


@dataclass(frozen=True)
class ServerUse:
    cpu_s: float | None
    peak_memory_bytes: int | None


def run_clients(
    serving: Serving,
    count: int,
    backend: Backend,
    pixels: NDArray[np.uint8],
    expected: NDArray[np.int64],
    seconds: float,
    group: int = 1,
) -> tuple[ServerUse, list[Asked]]:
    values = partial(values_of, where="bench throughput", remedy="Run it again with one model and `clients=1`.")
    calls = ((_ask, serving, number, backend, pixels, expected, seconds, group) for number in range(count))
    with workers(*calls) as ends:
        values(map(told_by, ends))  # all have their session, and have asked once
        before_s = cpu_seconds_of(serving.pid)
        for end in ends:
            tell(end, "go")
        clients: list[Asked] = values(map(told_by, ends))
        after_s = cpu_seconds_of(serving.pid)
    cpu_s = None if before_s is None or after_s is None else after_s - before_s
    return ServerUse(cpu_s, peak_memory_bytes_of(serving.pid)), clients


def _ask(
    told: Connection,
    serving: Serving,
    number: int,
    backend: Backend,
    pixels: NDArray[np.uint8],
    expected: NDArray[np.int64],
    seconds: float,
    group: int,
) -> Asked:
    with serving.client(number) as client:

        def ask() -> list[Answer]:
            client.prepare(group, backend=backend)
            return [client.infer(pixels) for _ in range(group)]

        equal = all(np.array_equal(answer.integer_logits, expected) for answer in ask())
        told.send(("done", None))
        told.recv()
        answers: list[Answer] = []
        latencies: list[float] = []
        cpu_s, start_s = time.process_time(), time.monotonic()
        since_s = start_s
        while not answers or since_s < start_s + seconds:
            answers += ask()
            now_s = time.monotonic()
            latencies += [(now_s - since_s) / group] * group
            since_s = now_s
        cpu_s = time.process_time() - cpu_s
    return Asked(
        start_s,
        latencies,
        [answer.offline_seconds for answer in answers],
        [answer.online_seconds for answer in answers],
        cpu_s,
        answers[-1].offline_bytes,
        answers[-1].online_bytes,
        equal and all(np.array_equal(answer.integer_logits, expected) for answer in answers),
    )
