"""Measure the work of both parties for a layer of ReLUs: the protocol's own code over a channel that carries nothing.

CPU seconds of all threads, so that what native code spreads over the cores counts in full; the median of several, as
rows are. What a call returns offline is held, as a bundle is: the first touch of fresh memory is part of the work.
Received messages are zeros: no time depends on what is in them. The server's offline ones are the client's, since it
checks them. Two sizes of a layer tell its units' work from what it costs at any size.
"""

from __future__ import annotations

import statistics
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from sphynx.bench.core_rates import DEFAULT_OT_PARAMETER, connected
from sphynx.core import Prg, garbling, random_bytes
from sphynx.program.backends import Backend
from sphynx.program.cost.cost import relu_cost
from sphynx.program.cost.estimate import relu_units
from sphynx.program.cost.rates import PartSeconds
from sphynx.protocol.channel import Channel
from sphynx.protocol.ots import ClientOts, ServerOts
from sphynx.protocol.relu import Arrays, ReluLayer, relu_client, relu_server
from sphynx.protocol.transport import Buffer

W, K, F = 29, 32, 8  # near the layers of the networks that come with Sphynx: 23 to 32 bits, truncated by 9 to 17
FEW, MANY = 64, 8192


class MuteChannel(Channel):
    """Takes every message and sends it nowhere; what it is asked for is zeros, or what is in `given`."""

    def __init__(self, given: Sequence[bytearray] = ()) -> None:
        """No stream."""
        self._given = deque(given)
        self._taken: list[tuple[Buffer, ...]] = []

    def taken(self) -> list[bytearray]:
        """The messages that it took."""
        return [bytearray(b"".join(memoryview(part).cast("B") for part in parts)) for parts in self._taken]

    @contextmanager
    def section(self, phase: str, layer: str = "") -> Iterator[None]:  # noqa: ARG002 - nothing is counted
        yield

    @property
    def ahead_bytes(self) -> int:
        return 1 << 26

    def send(self, *parts: Buffer) -> None:
        self._taken.append(parts)

    def receive(self, size: int, *, timeout_s: float | None = None) -> bytearray:  # noqa: ARG002 - it never waits
        return self._given.popleft() if self._given else bytearray(size)


def relu_offline_seconds(backend: Backend, repeats: int) -> PartSeconds:
    return PartSeconds(*_line_of(backend, lambda layer: _offline_seconds(layer, repeats)))


def relu_online_seconds(backend: Backend, repeats: int) -> PartSeconds:
    return PartSeconds(*_line_of(backend, lambda layer: _online_seconds(layer, repeats)))


def _line_of(backend: Backend, seconds: Callable[[_OneLayer], float]) -> tuple[float, float]:
    few, many = (_OneLayer(backend, count) for count in (FEW, MANY))
    return line(few.units, seconds(few), many.units, seconds(many))


def line(few: int, few_s: float, many: int, many_s: float) -> tuple[float, float]:
    """Seconds for each unit, and at any number of them; neither is less than none."""
    each = min(max(many_s - few_s, 0.0) / (many - few), many_s / many)
    return each, max(few_s - few * each, 0.0)


class _OneLayer:
    """Both parties of one layer."""

    def __init__(self, backend: Backend, count: int) -> None:
        self.units = relu_units(relu_cost(count, W, K, F), backend)
        self.layer = ReluLayer.planned("one layer", w=W, k=K, f=F, count=count)
        self.server, self.client = relu_server(backend), relu_client(backend)
        self.x = np.random.default_rng(0).integers(0, 1 << W, count, np.uint64)
        self._server_ots, self._client_ots = ready_ots()

    def prepare(self) -> tuple[Arrays, Arrays]:
        """(server's, client's) material."""
        asks = MuteChannel()
        (client_half,) = self.client.offline(asks, self._client_ots, [self.layer], [self.x], [self.x])
        (server_half,) = self.server.offline(MuteChannel(asks.taken()), self._server_ots, [self.layer])
        return server_half, client_half


def _offline_seconds(one: _OneLayer, repeats: int) -> float:
    held: list[tuple[Arrays, Arrays]] = []
    return median_cpu_seconds(lambda: held.append(one.prepare()), repeats)


def _online_seconds(one: _OneLayer, repeats: int) -> float:
    channel, (server_half, client_half) = MuteChannel(), one.prepare()
    server_s = median_cpu_seconds(lambda: one.server.online(channel, one.layer, server_half, one.x), repeats)
    return server_s + median_cpu_seconds(
        lambda: one.client.online(channel, one.layer, client_half, one.x, one.x), repeats
    )


def ready_ots() -> tuple[ServerOts, ClientOts]:
    down_receiver, down_sender = connected(DEFAULT_OT_PARAMETER, checked=True)
    up_receiver, up_sender = connected(DEFAULT_OT_PARAMETER, checked=False)
    prg = Prg()
    said = random_bytes(prg, 16)
    server = ServerOts(down_sender, garbling.random_delta(prg), prg, said, up_receiver)
    return server, ClientOts(down_receiver, prg, said, few_up=up_sender)


def median_cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """The median CPU time of the whole process, unlike `best_seconds`: native code starts threads. After a call that is
    not counted."""
    work()
    found = []
    for _ in range(repeats):
        started = time.process_time()
        work()
        found.append(time.process_time() - started)
    return statistics.median(found)
