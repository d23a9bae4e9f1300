"""This machine's rates for `sphynx estimate`: the core's micro-benchmarks on one core, both parties' work on ReLUs, and
what the channel between two processes costs. Each is measured by itself. kept_rates.py of `program/cost` keeps them.
"""

from __future__ import annotations

import math
import platform
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sphynx.bench.channel_costs import byte_seconds
from sphynx.bench.core_rates import (
    DEFAULT_OT_PARAMETER,
    FEW,
    FEW_INPUTS,
    INPUTS,
    memory_product_seconds,
    ot_rates,
    primitive_times,
    ring_seconds,
    silent_seconds,
)
from sphynx.bench.machine import best_seconds
from sphynx.bench.private_parties import OpenChannel
from sphynx.bench.relu_work import gate_byte_seconds, relu_seconds
from sphynx.bench.small_network import BACKEND, run_small, small_network
from sphynx.core import rlwe
from sphynx.core.conv_shape import ConvShape
from sphynx.core.ring import RingConv
from sphynx.program.cost.estimate import estimate
from sphynx.program.cost.link import Link
from sphynx.program.cost.rates import HeSeconds, Rates
from sphynx.program.extensions import SOFTSPOKEN
from sphynx.program.ir import Pool
from sphynx.protocol.shares import pool_share
from sphynx.threads import available_cores

REPEATS = 5
SMALL_RING, LARGE_RING = 32, 64
CONVOLUTION = ConvShape.square(20, (16, 16), 20, 5, padding=2)
SHORT_CONVOLUTION = ConvShape.square(3, (16, 16), 20, 1)  # its 15,360 MACs take a few microseconds
SHORT_POOL = Pool("", "", tuple((row, row + 1) for row in range(16)), (1,) * 16, ((0, 2),), (1,))


def measure_rates(open_channel: OpenChannel) -> Rates:
    """A few seconds."""
    small, gmw = run_small(open_channel), relu_seconds("gmw", REPEATS)
    rates = Rates(
        machine=f"{platform.node()} ({platform.machine()})",
        cores=available_cores(),
        busy_cores=small.busy_cores,
        gc=relu_seconds("gc", REPEATS),
        gmw=gmw,
        ot_bytes=ot_rates(DEFAULT_OT_PARAMETER, 1, 1)["ot_bytes_each"],
        silent_ot=silent_seconds(),
        limb_macs_per_s=_limb_mac_rate(),
        step_s=_step_seconds(),
        message_s=0.0,
        byte_s=byte_seconds(open_channel),
        he_small=_he_seconds(SMALL_RING),
        he_large=_he_seconds(LARGE_RING),
        gate_byte_s=gate_byte_seconds(gmw.offline, REPEATS),
    )
    return replace(rates, message_s=_message_seconds(rates, small.online_s))


def _message_seconds(rates: Rates, online_s: float) -> float:
    """Attribute to each message what is left of a small network's inference: framing, TLS, system calls, the wait until
    the other party runs, and what is done on one thread around them."""
    program, here = small_network()[0], Link(0.0, math.inf, "loopback")

    def estimated_s(message_s: float) -> float:
        return estimate(program, replace(rates, message_s=message_s), here, BACKEND, SOFTSPOKEN).total.online_seconds

    work_s = estimated_s(0.0)
    return max(online_s - work_s, 0.0) / (estimated_s(1.0) - work_s)


def _he_seconds(ring_bits: int) -> HeSeconds:
    params = rlwe.Params.for_ring(ring_bits)
    times = primitive_times(params, REPEATS)
    product = _product_seconds(times["rlwe_product_s"], times["rlwe_product_of_few_s"])
    reply, decrypt = (
        _used_seconds(times[f"rlwe_{name}_s"], times[f"rlwe_{name}_few_s"], params.n) for name in ("reply", "decrypt")
    )
    return HeSeconds(
        product=product,
        encrypt=times["rlwe_encrypt_s"],
        parse=times["rlwe_parse_s"],
        reply=max(reply.fixed - INPUTS * product, 0.0),
        decrypt=decrypt.fixed,
        weight=max(memory_product_seconds(params, REPEATS) - times["rlwe_product_s"], 0.0),
        used=reply.each + decrypt.each,
        transform=_transform_seconds(params),
    )


def _product_seconds(many: float, few: float) -> float:
    """Seconds of one more product in a sum; what a sum takes at any number of them counts for its reply."""
    more = INPUTS * many - FEW_INPUTS * few
    return min(max(more, 0.0) / (INPUTS - FEW_INPUTS), many)


def _transform_seconds(params: rlwe.Params) -> float:
    """With its packing."""
    plan = rlwe.plan(params, CONVOLUTION)
    weights = np.ones((CONVOLUTION.out_channels, CONVOLUTION.in_channels, 5, 5), np.int32)
    return best_seconds(lambda: rlwe.PreparedConv(params, plan, [weights], 1), REPEATS) / plan.products


class _Used(NamedTuple):
    """Seconds of a reply at either party: at any number of used coefficients, and for each of them."""

    fixed: float
    each: float


def _used_seconds(whole: float, few: float, n: int) -> _Used:
    each = max(whole - few, 0.0) / (n - n // FEW)
    return _Used(max(whole - each * n, 0.0), each)


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
