"""Measure the work of both parties for a layer of ReLUs: the protocol's own code over a channel that carries nothing.

CPU seconds of all threads, so that what native code spreads over the cores counts in full; the best of several. What a
call returns is held, as a bundle is: the first touch of fresh memory is part of the work. Received messages are zeros:
no time depends on what is in them. Online, two sizes of a layer tell its units' work from what it costs at any size.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from sphynx.bench.core_rates import DEFAULT_OT_PARAMETER, connected
from sphynx.core import Prg, garbling
from sphynx.program.backends import Backend
from sphynx.program.cost.cost import relu_cost
from sphynx.program.cost.estimate import ReluSeconds, relu_units
from sphynx.protocol.channel import Channel
from sphynx.protocol.ots import ClientOts, ServerOts
from sphynx.protocol.relu import ReluLayer, relu_client, relu_server
from sphynx.protocol.transport import Buffer

W, K, F = 29, 32, 8  # near the layers of the networks that come with Sphynx: 23 to 32 bits, truncated by 9 to 17
FEW, MANY = 2048, 8192


class MuteChannel(Channel):
    """Takes every message and sends it nowhere; what it is asked for is zeros."""

    def __init__(self) -> None:
        """No stream."""

    @contextmanager
    def section(self, phase: str, layer: str = "") -> Iterator[None]:  # noqa: ARG002 - nothing is counted
        yield

    @property
    def ahead_bytes(self) -> int:
        return 1 << 26

    def send(self, *parts: Buffer) -> None:
        """Nowhere."""

    def receive(self, size: int, *, timeout_s: float | None = None) -> bytearray:  # noqa: ARG002 - it never waits
        return bytearray(size)


def relu_seconds(backend: Backend, repeats: int) -> ReluSeconds:
    (few, _, few_online), (many, offline, online) = (_layer_seconds(backend, count, repeats) for count in (FEW, MANY))
    each = max(online - few_online, 0.0) / (many - few)
    return ReluSeconds(offline / many, each, max(few_online - few * each, 0.0))


def _layer_seconds(backend: Backend, count: int, repeats: int) -> tuple[int, float, float]:
    """(units, offline, online), both parties' together."""
    channel, layer = MuteChannel(), ReluLayer.planned("one layer", w=W, k=K, f=F, count=count)
    server, client = relu_server(backend), relu_client(backend)
    server_ots, client_ots = _ots()
    x = np.random.default_rng(0).integers(0, 1 << W, count, np.uint64)
    (server_material,) = server.offline(channel, server_ots, [layer])
    (client_material,) = client.offline(channel, client_ots, [layer], [x], [x])
    offline = _best_cpu_seconds(lambda: server.offline(channel, server_ots, [layer]), repeats)
    offline += _best_cpu_seconds(lambda: client.offline(channel, client_ots, [layer], [x], [x]), repeats)
    online = _best_cpu_seconds(lambda: server.online(channel, layer, server_material, x), repeats)
    online += _best_cpu_seconds(lambda: client.online(channel, layer, client_material, x, x), repeats)
    return relu_units(relu_cost(count, W, K, F), backend), offline, online


def _ots() -> tuple[ServerOts, ClientOts]:
    (down_receiver, down_sender), (up_receiver, up_sender) = (connected(DEFAULT_OT_PARAMETER) for _ in range(2))
    prg = Prg()
    server = ServerOts(down_sender, up_receiver, garbling.random_delta(prg), prg)
    return server, ClientOts(down_receiver, up_sender, prg)


def _best_cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """The best CPU time of the whole process, unlike `best_seconds`: native code starts threads."""
    held = [work()]
    best = float("inf")
    for _ in range(repeats):
        started = time.process_time()
        held.append(work())
        best = min(best, time.process_time() - started)
    return best
