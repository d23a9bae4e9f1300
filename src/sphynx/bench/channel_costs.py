"""What a message and a byte cost between two processes of this machine, over the channel that private inference uses.

A message is a one-way one of a GMW layer (their mean size), timed by the wall clock from the sender's call to the
receiver's return: framing, TLS, system calls, and the wait until the other process runs. Each party goes through some
memory before it sends, which is taken off again, because messages come between convolutions and find cold caches. A
byte is timed by the CPU time of both parties in a long stream. The best of several: other work only slows them down.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

import numpy as np

from sphynx.bench.private_parties import OpenChannel, accepted, connected, run_pair
from sphynx.bench.relu_work import F, K, W
from sphynx.core.gmw import ReluShape, online_messages
from sphynx.protocol.channel import Channel

TURNS, EXCHANGES = 20, 8
LAYER_RELUS = 5120  # of the 25.6K-ReLU network
SWEPT_BYTES = 1 << 20  # a core's second-level cache
STREAM_MESSAGE_BYTES, STREAM_MESSAGES = 1 << 20, 16


@dataclass(frozen=True)
class ChannelCosts:
    message_s: float
    byte_s: float


@dataclass(frozen=True)
class _Seen:
    """By one party."""

    message_s: float  # with its bytes
    stream_cpu_s: float


def channel_costs(open_channel: OpenChannel) -> ChannelCosts:
    server, client = run_pair(
        partial(_serve, open_channel=open_channel),
        partial(_ask, open_channel=open_channel),
        where="measuring this machine",
        remedy="Run sphynx doctor.",
    )
    byte_s = (server.stream_cpu_s + client.stream_cpu_s) / (STREAM_MESSAGE_BYTES * STREAM_MESSAGES)
    sizes = _message_sizes()
    return ChannelCosts(max(client.message_s - byte_s * sum(sizes) / len(sizes), 0.0), byte_s)


def _message_sizes() -> tuple[int, ...]:
    sizes = online_messages(ReluShape(W, K, F, LAYER_RELUS))
    return sizes.leaves, *sizes.levels, sizes.results + sizes.ring_elements, sizes.ring_elements


def _serve(told: Connection, open_channel: OpenChannel) -> _Seen:
    channel = accepted(told, open_channel, None)

    def answer(message: bytes, before: Callable[[], None]) -> None:
        channel.receive(len(message))
        before()
        channel.send(message)

    def take() -> None:
        for _ in range(STREAM_MESSAGES):
            channel.receive(STREAM_MESSAGE_BYTES)

    return _measured(channel, answer, take)


def _ask(told: Connection, open_channel: OpenChannel) -> _Seen:
    channel = connected(told, open_channel, None)

    def ask(message: bytes, before: Callable[[], None]) -> None:
        before()
        channel.send(message)
        channel.receive(len(message))

    def give() -> None:
        stream = bytes(STREAM_MESSAGE_BYTES)
        for _ in range(STREAM_MESSAGES):
            channel.send(stream)

    return _measured(channel, ask, give)


def _measured(
    channel: Channel, exchange: Callable[[bytes, Callable[[], None]], None], stream: Callable[[], None]
) -> _Seen:
    messages = [bytes(size) for size in _message_sizes()] * EXCHANGES
    memory = np.ones(SWEPT_BYTES // 8, np.uint64)
    swept_s = 0.0

    def sweep() -> None:
        nonlocal swept_s
        started = time.perf_counter()
        memory.sum()
        swept_s += time.perf_counter() - started

    message_s = stream_cpu_s = float("inf")
    for _ in range(TURNS):
        started, swept_s = time.perf_counter(), 0.0
        for message in messages:
            exchange(message, sweep)
        # The other party goes through as much memory, in the same time.
        message_s = min(message_s, (time.perf_counter() - started - 2 * swept_s) / (2 * len(messages)))
        started = time.process_time()
        stream()
        stream_cpu_s = min(stream_cpu_s, time.process_time() - started)
        exchange(b".", lambda: None)
    channel.close()
    return _Seen(message_s, stream_cpu_s)
