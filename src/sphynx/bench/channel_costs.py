"""What a message and a byte cost between two processes of this machine, over the channel that private inference uses.

A message is one of a GMW layer (their mean size), timed by the wall clock from the call that sends to the return with
what the other party sent at the same time: framing, TLS, system calls, and the wait until the other process runs.
Beside it the server convolves on another thread, as it does during a ReLU layer (`ServerPass.ahead` in
protocol/linear.py): where cores are few, a message waits for its turn. A byte is timed by the CPU time of both parties
in a long stream. Medians.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection

import numpy as np

from sphynx.bench.private_parties import OpenChannel, accepted, connected, run_pair
from sphynx.bench.relu_work import F, K, W
from sphynx.core.conv_shape import ConvShape
from sphynx.core.gmw import ReluShape, online_messages
from sphynx.core.ring import RingConv
from sphynx.protocol.channel import Channel

TURNS, LAYERS = 20, 8
LAYER_RELUS = 5120  # of the 25.6K-ReLU network
STREAM_MESSAGE_BYTES, STREAM_MESSAGES = 1 << 20, 16
CONVOLUTION = ConvShape.square(80, (8, 8), 80, 5, padding=2)


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

    def take() -> None:
        for _ in range(STREAM_MESSAGES):
            channel.receive(STREAM_MESSAGE_BYTES)

    return _measured(channel, take, beside=_convolving())


def _ask(told: Connection, open_channel: OpenChannel) -> _Seen:
    channel, message = connected(told, open_channel, None), bytes(STREAM_MESSAGE_BYTES)

    def give() -> None:
        for _ in range(STREAM_MESSAGES):
            channel.send(message)

    return _measured(channel, give, beside=nullcontext())


def _measured(channel: Channel, stream: Callable[[], None], *, beside: AbstractContextManager[None]) -> _Seen:
    messages = [bytes(size) for size in _message_sizes()] * LAYERS
    message_s, stream_cpu_s = [], []
    with beside:
        for _ in range(TURNS):
            started = time.perf_counter()
            for message in messages:
                _exchange(channel, message)
            message_s.append((time.perf_counter() - started) / len(messages))
    for _ in range(TURNS):
        started = time.process_time()
        stream()
        _exchange(channel, b".")  # the last byte has arrived
        stream_cpu_s.append(time.process_time() - started)
    channel.close()
    return _Seen(statistics.median(message_s), statistics.median(stream_cpu_s))


def _exchange(channel: Channel, message: bytes) -> None:
    channel.send(message)
    channel.receive(len(message))


@contextmanager
def _convolving() -> Iterator[None]:
    """On a thread of its own, without pause."""
    shape = CONVOLUTION
    kernel = (shape.out_channels, shape.in_channels, shape.kernel_height, shape.kernel_width)
    convolve = RingConv(shape, K, np.ones(kernel, np.int32))
    image = np.ones((shape.in_channels, shape.height, shape.width), np.uint32)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            convolve(image, 1)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
