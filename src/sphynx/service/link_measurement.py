"""Measures the link to the server, and chooses the ReLU backend and the OT extension that are faster on it.

The model is that of `sphynx estimate`, with this machine's rates where they were measured before, else with the
reference machine's: nothing is calibrated here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

from sphynx.program.backends import Backend
from sphynx.program.cost.estimate import faster_backend, faster_extensions
from sphynx.program.cost.kept_rates import kept_rates
from sphynx.program.cost.link import Link
from sphynx.program.cost.rates import REFERENCE, Rates
from sphynx.program.extensions import SOFTSPOKEN, Extensions
from sphynx.program.ir import Program
from sphynx.protocol.channel import Channel
from sphynx.service import session
from sphynx.service.session import MAX_PING_BYTES, Ping

ROUND_TRIPS = 5
SIZES = (1 << 16, MAX_PING_BYTES)  # the larger only where the smaller goes too fast to be timed
ENOUGH_S = 0.1
NARROW = Link(0.0, 1e3, "narrow")


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


def choose_backend(program: Program, measured: Link, batch: int = 1) -> Backend:
    rates = kept_rates() or REFERENCE
    return faster_backend(program, rates, beyond_hosts(measured, rates), batch)


def choose_extensions(
    program: Program, measure: Callable[[], Link], backend: Backend, *, images: int, ready: frozenset[str]
) -> Extensions:
    """Choose how OTs are extended for this many images; `ready` are the directions in which silent OT is set up. The
    link is not measured where silent OT cannot pay on any. The server's cores are taken to be as many as here."""
    here = kept_rates() or REFERENCE
    rates = replace(here, cores=2 * here.cores)

    def chosen(link: Link) -> Extensions:
        return faster_extensions(program, rates, link, backend, images=images, ready=ready)

    if chosen(NARROW) == SOFTSPOKEN:
        return SOFTSPOKEN
    return chosen(beyond_hosts(measure(), here))


def beyond_hosts(measured: Link, rates: Rates) -> Link:
    """The link between the hosts: the rates have the hosts' own work on each message and each byte already."""
    round_trip_s = max(measured.round_trip_s - 2 * (rates.message_s + rates.link_message_s), 0.0)
    byte_s = 8 / measured.bits_per_s - rates.byte_s
    return Link(round_trip_s, 8 / byte_s if byte_s > 0 else math.inf, measured.name)


def _ping(channel: Channel, down_bytes: int) -> float:
    start_s = time.monotonic()
    session.send(channel, Ping(0, down_bytes))
    channel.send(b"")
    channel.receive(down_bytes)
    return time.monotonic() - start_s
