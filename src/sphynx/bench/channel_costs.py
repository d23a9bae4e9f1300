"""Measure what a message and a byte cost between two processes of this machine, over private inference's own channel.

A message is one of a GMW layer (their mean size); the parties take turns, and half a turn is timed by the wall clock,
from the call that sends to the other party's return: framing, TLS, system calls, and the wait until it runs.
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

from sphynx.bench.private_parties import OpenChannel, accept_client, connect_to_server, run_pair
from sphynx.bench.relu_work import F, K, W
from sphynx.core.conv_shape import ConvShape
from sphynx.core.gmw import ReluShape, online_messages
from sphynx.core.ring import RingConv
from sphynx.protocol.channel import Channel

REPEATS, MESSAGES = 20, 32  # of either party, in each repeat
LAYER_RELUS = 5120  # of the 25.6K-ReLU network
STREAM_MESSAGE_BYTES, STREAM_MESSAGES = 1 << 20, 16
CONVOLUTION = ConvShape.square(80, (8, 8), 80, 5, padding=2)


@dataclass(frozen=True)
class ChannelCosts:
    message_s: float
    byte_s: float


@dataclass(frozen=True)
class _Seen:
    """Times that one party measured."""

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
    return ChannelCosts(max(client.message_s - byte_s * _message_bytes(), 0.0), byte_s)


def _message_bytes() -> int:
    """The mean size of a message of the layer."""
    sizes = online_messages(ReluShape(W, K, F, LAYER_RELUS))
    return sizes.online_bytes // sizes.messages


def _serve(told: Connection, open_channel: OpenChannel) -> _Seen:
    channel = accept_client(told, open_channel, None)

    def take() -> None:
        for _ in range(STREAM_MESSAGES):
            channel.receive(STREAM_MESSAGE_BYTES)

    return _measure(channel, take, first=True, beside=_convolving())


def _ask(told: Connection, open_channel: OpenChannel) -> _Seen:
    channel, message = connect_to_server(told, open_channel, None), bytes(STREAM_MESSAGE_BYTES)

    def give() -> None:
        for _ in range(STREAM_MESSAGES):
            channel.send(message)

    return _measure(channel, give, first=False, beside=nullcontext())


def _measure(
    channel: Channel, stream: Callable[[], None], *, first: bool, beside: AbstractContextManager[None]
) -> _Seen:
    message = bytes(_message_bytes())
    message_s, stream_cpu_s = [], []
    with beside:
        for _ in range(REPEATS):
            started = time.perf_counter()
            for _ in range(MESSAGES):
                _take_turns(channel, message, first=first)
            message_s.append((time.perf_counter() - started) / (2 * MESSAGES))
    for _ in range(REPEATS):
        started = time.process_time()
        stream()
        _take_turns(channel, b".", first=first)  # the last byte has arrived
        stream_cpu_s.append(time.process_time() - started)
    channel.close()
    return _Seen(statistics.median(message_s), statistics.median(stream_cpu_s))


def _take_turns(channel: Channel, message: bytes, *, first: bool) -> None:
    if first:
        channel.send(message)
    channel.receive(len(message))
    if not first:
        channel.send(message)


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
