"""Measure what a byte costs between two processes of this machine, over private inference's own channel: the CPU time
of both parties in a long stream. The median of several.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection

from sphynx.bench.private_parties import OpenChannel, accept_client, connect_to_server, in_step, run_pair
from sphynx.protocol.channel import Channel

REPEATS = 20
MESSAGE_BYTES, MESSAGES = 1 << 20, 16


def byte_seconds(open_channel: OpenChannel) -> float:
    taken_s, given_s = run_pair(
        partial(_take, open_channel=open_channel),
        partial(_give, open_channel=open_channel),
        where="measuring this machine",
        remedy="Run sphynx doctor.",
    )
    return (taken_s + given_s) / (MESSAGE_BYTES * MESSAGES)


def _take(told: Connection, open_channel: OpenChannel) -> float:
    channel = accept_client(told, open_channel, None)
    return _stream_cpu_seconds(channel, lambda: channel.receive(MESSAGE_BYTES))


def _give(told: Connection, open_channel: OpenChannel) -> float:
    channel, message = connect_to_server(told, open_channel, None), bytes(MESSAGE_BYTES)
    return _stream_cpu_seconds(channel, lambda: channel.send(message))


def _stream_cpu_seconds(channel: Channel, pass_one: Callable[[], object]) -> float:
    found = []
    for _ in range(REPEATS):
        started = time.process_time()
        for _ in range(MESSAGES):
            pass_one()
        in_step(channel)  # the last byte has arrived
        found.append(time.process_time() - started)
    channel.close()
    return statistics.median(found)
