"""Measures the link to the server, and chooses the ReLU backend that is faster on it.

The estimate counts what the link adds online: half a round trip for every one-way message of every ReLU layer, and the
bytes. What the parties compute is left out: it is alike for both and small beside the link's share.
"""

from __future__ import annotations

import time

from sphynx.program.backends import BACKENDS, Backend
from sphynx.program.cost.cost import activation_costs
from sphynx.program.cost.link import Link
from sphynx.program.ir import Program
from sphynx.protocol.channel import Channel
from sphynx.service import session
from sphynx.service.session import MAX_PING_BYTES, Ping

ROUND_TRIPS = 5
SIZES = (1 << 16, MAX_PING_BYTES)  # the larger only where the smaller goes too fast to be timed
ENOUGH_S = 0.1


def measure_link(channel: Channel) -> Link:
    round_trip_s = min(_ping(channel, 0) for _ in range(ROUND_TRIPS))
    bits_per_s = 0.0
    for size in SIZES:
        took_s = _ping(channel, size)
        # Down only: the garbled labels, which decide, come from the server.
        bits_per_s = 8 * size / max(took_s - round_trip_s, 1e-6)
        if took_s >= ENOUGH_S:
            break
    return Link(round_trip_s, bits_per_s)


def online_link_seconds(program: Program, backend: Backend, link: Link, batch: int = 1) -> float:
    messages = online_bytes = 0
    for _, cost in activation_costs(program, batch):
        if cost.relus:
            messages += cost.gc_messages if backend == "gc" else cost.gmw_messages
            online_bytes += cost.gc_online_bytes if backend == "gc" else cost.gmw_online_bytes
    return messages * link.round_trip_s / 2 + 8 * online_bytes / link.bits_per_s


def choose_backend(program: Program, link: Link, batch: int = 1) -> Backend:
    return min(BACKENDS, key=lambda backend: online_link_seconds(program, backend, link, batch))


def _ping(channel: Channel, down_bytes: int) -> float:
    start_s = time.monotonic()
    session.send(channel, Ping(0, down_bytes))
    channel.send(b"")
    channel.receive(down_bytes)
    return time.monotonic() - start_s
