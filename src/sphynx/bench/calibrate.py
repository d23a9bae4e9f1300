"""This machine's rates for `sphynx estimate`: what both parties work offline, on a core each at once; what they work
online, in turn; what the channel between two processes costs. Each is measured by itself. kept_rates.py of
`program/cost` keeps them.
"""

from __future__ import annotations

import platform
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sphynx.bench.channel_costs import byte_seconds
from sphynx.bench.core_rates import DEFAULT_OT_PARAMETER, ot_rates, ring_seconds
from sphynx.bench.machine import best_seconds
from sphynx.bench.offline_work import CONVOLUTION, SMALL_RING, offline_work
from sphynx.bench.private_parties import OpenChannel
from sphynx.bench.relu_work import line, relu_online_seconds
from sphynx.bench.small_network import BACKEND, NARROW, WIDE, run_small, small_network
from sphynx.core.conv_shape import ConvShape
from sphynx.core.ring import RingConv
from sphynx.program.backends import Backend
from sphynx.program.cost.cost import total_cost
from sphynx.program.cost.estimate import estimate
from sphynx.program.cost.link import LINKS, Link
from sphynx.program.cost.rates import PartSeconds, Rates, ReluSeconds
from sphynx.program.extensions import SOFTSPOKEN
from sphynx.program.ir import Pool
from sphynx.protocol.shares import pool_share
from sphynx.threads import available_cores

REPEATS = 5
HERE, FAR = LINKS["loopback"], LINKS["lan"]
SHORT_CONVOLUTION = ConvShape.square(3, (16, 16), 20, 1)  # its 15,360 MACs take a few microseconds
SHORT_POOL = Pool("", "", tuple((row, row + 1) for row in range(16)), (1,) * 16, ((0, 2),), (1,))


def measure_rates(open_channel: OpenChannel) -> Rates:
    """Several seconds."""
    wide, narrow, far = (run_small(open_channel, *kind) for kind in ((WIDE,), (NARROW,), (NARROW, FAR)))
    work = offline_work(REPEATS)
    rates = Rates(
        machine=f"{platform.node()} ({platform.machine()})",
        cores=available_cores(),
        busy_cores=wide.busy_cores,
        gc=_relu_seconds("gc", work.gc),
        gmw=_relu_seconds("gmw", work.gmw),
        truncation=work.parts.truncation,
        square=work.parts.square,
        gate=work.parts.gate,
        ot_bytes=ot_rates(DEFAULT_OT_PARAMETER, 1, 1)["ot_bytes_each"],
        silent_ot=work.silent_ot,
        limb_macs_per_s=_limb_mac_rate(),
        step_s=_step_seconds(),
        message_s=0.0,
        byte_s=byte_seconds(open_channel),
        he_small=work.he_small,
        he_large=work.he_large,
        gate_byte_s=work.parts.gate_byte_s,
    )
    return _of_whole_inferences(rates, narrow.online_s, wide.online_s, far.online_s)


def _of_whole_inferences(rates: Rates, narrow_s: float, wide_s: float, far_s: float) -> Rates:
    """Attribute what is left of small networks' inferences. What a wider network takes more is due to each OT: material
    and messages come from memory, other than in a loop. The rest is due to each message: framing, TLS, system calls,
    the wait until the other party runs, what is done on one thread around them; over a link what that takes more."""
    narrow, wide = _left(rates, NARROW, HERE, narrow_s), _left(rates, WIDE, HERE, wide_s)
    each, fixed_s = line(narrow.ots, narrow.seconds, wide.ots, wide.seconds)
    gmw = replace(rates.gmw, online=rates.gmw.online + each)
    rates = replace(rates, gmw=gmw, message_s=fixed_s / narrow.messages)
    far = _left(rates, NARROW, FAR, far_s)
    return replace(rates, link_message_s=far.seconds / far.messages)


class _Left(NamedTuple):
    """Seconds that the estimate of an inference lacks; what it has of messages and OTs."""

    seconds: float
    messages: float
    ots: int


def _left(rates: Rates, channels: int, link: Link, online_s: float) -> _Left:
    program = small_network(channels)[0]

    def estimated_s(by: Rates) -> float:
        return estimate(program, by, link, BACKEND, SOFTSPOKEN).total.online_seconds

    work_s = estimated_s(rates)
    messages = estimated_s(replace(rates, message_s=rates.message_s + 1.0)) - work_s
    return _Left(max(online_s - work_s, 0.0), messages, total_cost(program).gmw_ots)


def _relu_seconds(backend: Backend, offline: PartSeconds) -> ReluSeconds:
    online = relu_online_seconds(backend, REPEATS)
    return ReluSeconds(offline.each, online.each, online.layer, offline.layer)


def _limb_mac_rate() -> float:
    kernel = (CONVOLUTION.out_channels, CONVOLUTION.in_channels, CONVOLUTION.kernel_height, CONVOLUTION.kernel_width)
    weights = np.random.default_rng(0).integers(-128, 128, kernel).astype(np.int32)
    return CONVOLUTION.multiplications * SMALL_RING / 8 / ring_seconds(CONVOLUTION, SMALL_RING, weights, REPEATS)[0]


def _step_seconds() -> float:
    """The mean of a convolution, on as many threads as the server takes, and a pool."""
    shape = SHORT_CONVOLUTION
    conv = RingConv(shape, SMALL_RING, np.ones((shape.out_channels, shape.in_channels, 1, 1), np.int32))
    image = np.ones((1, shape.in_channels, shape.height, shape.width), np.uint32)
    total = np.zeros((shape.out_channels, shape.out_height, shape.out_width), np.uint32)

    def convolution() -> None:
        np.add(total, conv(image[0]), out=total)

    steps = (convolution, lambda: pool_share(SHORT_POOL, image))
    return sum(best_seconds(step, 20 * REPEATS, threads=available_cores()) for step in steps) / len(steps)
