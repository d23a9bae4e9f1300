"""Measure the work of both parties for a layer of ReLUs: the protocol's own code over a channel that carries nothing.

CPU seconds of all threads, so that what native code spreads over the cores counts in full; the best of several. What a
call returns is held, as a bundle is: the first touch of fresh memory is part of the work. Received messages are zeros:
no time depends on what is in them. The server's offline ones are the client's, since it checks them. Two sizes of a
layer tell its units' work from what it costs at any size.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

import numpy as np

from sphynx.bench.core_rates import DEFAULT_OT_PARAMETER, connected
from sphynx.core import Prg, garbling, random_bytes
from sphynx.program.backends import Backend
from sphynx.program.cost.cost import relu_cost
from sphynx.program.cost.estimate import relu_units
from sphynx.program.cost.rates import ReluSeconds
from sphynx.protocol.channel import Channel
from sphynx.protocol.gating import Gating, GatingOffer, GatingRequest, accepted_offer
from sphynx.protocol.ots import ClientOts, ServerOts
from sphynx.protocol.relu import ReluLayer, relu_client, relu_server
from sphynx.protocol.transport import Buffer

Result = TypeVar("Result")

W, K, F = 29, 32, 8  # near the layers of the networks that come with Sphynx: 23 to 32 bits, truncated by 9 to 17
FEW, MANY = 2048, 8192
GATES, GATE_LENGTH = 64, 256


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


def relu_seconds(backend: Backend, repeats: int) -> ReluSeconds:
    (few, *little), (many, *much) = (_layer_seconds(backend, count, repeats) for count in (FEW, MANY))
    (offline, offline_layer), (online, online_layer) = (
        _line(few, few_s, many, many_s) for few_s, many_s in zip(little, much, strict=True)
    )
    return ReluSeconds(offline, online, online_layer, offline_layer)


def _line(few: int, few_s: float, many: int, many_s: float) -> tuple[float, float]:
    """Seconds for each unit, and at any number of them; neither is less than none."""
    each = min(max(many_s - few_s, 0.0) / (many - few), many_s / many)
    return each, max(few_s - few * each, 0.0)


def _layer_seconds(backend: Backend, count: int, repeats: int) -> tuple[int, float, float]:
    """(units, offline, online), both parties' together."""
    channel, layer = MuteChannel(), ReluLayer.planned("one layer", w=W, k=K, f=F, count=count)
    server, client = relu_server(backend), relu_client(backend)
    server_ots, client_ots = _ots()
    x = np.random.default_rng(0).integers(0, 1 << W, count, np.uint64)
    held, offline = [], [float("inf"), float("inf")]
    for _ in range(repeats + 1):
        asks = MuteChannel()
        client_s, client_half = _cpu_seconds(partial(client.offline, asks, client_ots, [layer], [x], [x]))
        answers = MuteChannel(asks.taken())
        server_s, server_half = _cpu_seconds(partial(server.offline, answers, server_ots, [layer]))
        held.append((*client_half, *server_half))
        offline = [min(offline[0], client_s), min(offline[1], server_s)]
    client_material, server_material = held[0]
    online = _best_cpu_seconds(lambda: server.online(channel, layer, server_material, x), repeats)
    online += _best_cpu_seconds(lambda: client.online(channel, layer, client_material, x, x), repeats)
    return relu_units(relu_cost(count, W, K, F), backend), sum(offline), online


def gate_byte_seconds(ot_s: float, repeats: int) -> float:
    """Both parties' work on the long messages of gates, for each byte of corrections; `ot_s` is that of an OT."""
    plan = Gating(K, GATES, GATE_LENGTH)
    server_ots, client_ots = _ots()
    shares = np.random.default_rng(0).integers(0, 1 << K, plan.count + plan.gates, np.uint64)

    def both() -> None:
        offer = GatingOffer(plan, server_ots)
        offered = accepted_offer(plan, client_ots, bytearray(b"".join(offer.message)))
        request = GatingRequest(plan, client_ots, shares, offered)
        answer, _ = offer.answer(server_ots, bytearray(b"".join(request.message)))
        request.finish(bytearray(b"".join(answer)))

    long_s = _best_cpu_seconds(both, repeats) - 2 * plan.ots * ot_s
    return max(long_s, 0.0) / (2 * sum(plan.correction_bytes))


def _ots() -> tuple[ServerOts, ClientOts]:
    down_receiver, down_sender = connected(DEFAULT_OT_PARAMETER, checked=True)
    up_receiver, up_sender = connected(DEFAULT_OT_PARAMETER, checked=False)
    prg = Prg()
    said = random_bytes(prg, 16)
    server = ServerOts(down_sender, garbling.random_delta(prg), prg, said, up_receiver)
    return server, ClientOts(down_receiver, prg, said, few_up=up_sender)


def _cpu_seconds(work: Callable[[], Result]) -> tuple[float, Result]:
    started = time.process_time()
    result = work()
    return time.process_time() - started, result


def _best_cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    """The best CPU time of the whole process, unlike `best_seconds`: native code starts threads."""
    runs = [_cpu_seconds(work) for _ in range(repeats + 1)]
    return min(seconds for seconds, _ in runs[1:])
