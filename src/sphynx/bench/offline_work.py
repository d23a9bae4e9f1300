"""Measure the work of the offline phase in two processes at once, as both parties do it: cores share caches and memory,
often more, so that work beside other work takes longer than alone. The mean of both.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from sphynx.bench.core_rates import FEW, FEW_INPUTS, INPUTS, memory_product_seconds, primitive_times, silent_seconds
from sphynx.bench.machine import best_seconds
from sphynx.bench.part_work import PartWork, part_seconds
from sphynx.bench.relu_work import relu_offline_seconds
from sphynx.bench.workers import tell, told_by_all, values_of, workers
from sphynx.core import rlwe
from sphynx.core.conv_shape import ConvShape
from sphynx.program.cost.rates import HeSeconds, PartSeconds

SMALL_RING, LARGE_RING = 32, 64
CONVOLUTION = ConvShape.square(20, (16, 16), 20, 5, padding=2)


@dataclass(frozen=True)
class OfflineWork:
    gc: PartSeconds  # for each AND gate
    gmw: PartSeconds
    parts: PartWork
    silent_ot: float
    he_small: HeSeconds
    he_large: HeSeconds


def offline_work(repeats: int) -> OfflineWork:
    with workers((_measure, repeats), (_measure, repeats)) as ends:
        where = {"where": "measuring this machine", "remedy": "Run sphynx doctor."}
        values_of(told_by_all(ends), **where)  # both have begun
        for end in ends:
            tell(end, "go")
        one, other = values_of(told_by_all(ends), **where)
    found: OfflineWork = _mean(one, other)
    return found


def _measure(told: Connection, repeats: int) -> OfflineWork:
    told.send(("done", None))
    told.recv()
    return OfflineWork(
        relu_offline_seconds("gc", repeats),
        relu_offline_seconds("gmw", repeats),
        part_seconds(repeats),
        silent_seconds(),
        he_seconds(SMALL_RING, repeats),
        he_seconds(LARGE_RING, repeats),
    )


def _mean(one: Any, other: Any) -> Any:
    if isinstance(one, float):
        return (one + other) / 2
    return type(one)(*(_mean(getattr(one, field.name), getattr(other, field.name)) for field in fields(one)))


def he_seconds(ring_bits: int, repeats: int) -> HeSeconds:
    params = rlwe.Params.for_ring(ring_bits)
    times = primitive_times(params, repeats)
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
        weight=max(memory_product_seconds(params, repeats) - times["rlwe_product_s"], 0.0),
        used=reply.each + decrypt.each,
        transform=_transform_seconds(params, repeats),
    )


def _product_seconds(many: float, few: float) -> float:
    """Seconds of one more product in a sum; what a sum takes at any number of them counts for its reply."""
    more = INPUTS * many - FEW_INPUTS * few
    return min(max(more, 0.0) / (INPUTS - FEW_INPUTS), many)


def _transform_seconds(params: rlwe.Params, repeats: int) -> float:
    """With its packing."""
    plan = rlwe.plan(params, CONVOLUTION)
    weights = np.ones((CONVOLUTION.out_channels, CONVOLUTION.in_channels, 5, 5), np.int32)
    return best_seconds(lambda: rlwe.PreparedConv(params, plan, [weights], 1), repeats) / plan.products


@dataclass(frozen=True)
class _Used:
    """Seconds of a reply at either party: at any number of used coefficients, and for each of them."""

    fixed: float
    each: float


def _used_seconds(whole: float, few: float, n: int) -> _Used:
    each = max(whole - few, 0.0) / (n - n // FEW)
    return _Used(max(whole - each * n, 0.0), each)
