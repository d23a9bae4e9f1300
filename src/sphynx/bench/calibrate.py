"""This machine's rates for `sphynx estimate`: the core's micro-benchmarks on one core, kept in the user's cache."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import numpy as np

from sphynx.bench.clock import best_seconds
from sphynx.bench.core_ring import ring_seconds
from sphynx.bench.core_rlwe import INPUTS, primitive_times
from sphynx.bench.core_symmetric import DEFAULT_OT_PARAMETER, garbling_rates, ot_rates
from sphynx.bench.machine import available_cores
from sphynx.core import gmw, rlwe
from sphynx.core.conv_shape import ConvShape
from sphynx.program.estimate import HeSeconds, Rates

REPEATS = 3
SMALL_RING, LARGE_RING = 32, 64
RELUS = gmw.ReluShape(26, 32, 8, 5120)  # one layer of the 25.6K-ReLU network
CONVOLUTION = ConvShape.square(20, (16, 16), 20, 5, padding=2)


def load_rates(*, recalibrate: bool = False) -> Rates:
    """Measured once, a few seconds, and kept; a file that cannot be used is measured again."""
    file = rates_file()
    if not recalibrate:
        try:
            return Rates.from_json(json.loads(file.read_text()))
        except (OSError, ValueError, KeyError, TypeError):
            pass
    rates = measure_rates()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_suffix(".new")
        temporary.write_text(json.dumps(rates.to_json(), indent=1) + "\n")
        temporary.replace(file)
    except OSError:
        pass  # a home that cannot be written costs the measurement again, nothing else
    return rates


def rates_file() -> Path:
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "sphynx" / f"rates-{platform.node()}.json"


def measure_rates() -> Rates:
    garbling = garbling_rates(1, REPEATS)
    extension = ot_rates(DEFAULT_OT_PARAMETER, 1, REPEATS)
    return Rates(
        machine=f"{platform.node()} ({platform.machine()})",
        cores=available_cores(),
        garble_ands_per_s=garbling["garble_ands_per_s"],
        evaluate_ands_per_s=garbling["evaluate_ands_per_s"],
        ots_per_s=extension["ot_per_s"],
        ot_bytes=extension["ot_bytes_each"],
        gmw_relus_per_s=_gmw_rate(),
        limb_macs_per_s=_limb_mac_rate(),
        he_small=_he_seconds(SMALL_RING),
        he_large=_he_seconds(LARGE_RING),
    )


def _he_seconds(ring_bits: int) -> HeSeconds:
    times = primitive_times(rlwe.Params.for_ring(ring_bits), REPEATS)
    product = times["rlwe_product_s"]
    return HeSeconds(
        product=product,
        encrypt=times["rlwe_encrypt_s"],
        parse=times["rlwe_parse_s"],
        reply=max(times["rlwe_reply_s"] - INPUTS * product, 0.0),
        decrypt=times["rlwe_decrypt_s"],
    )


def _limb_mac_rate() -> float:
    kernel = (CONVOLUTION.out_channels, CONVOLUTION.in_channels, CONVOLUTION.kernel_height, CONVOLUTION.kernel_width)
    weights = np.random.default_rng(0).integers(-128, 128, kernel).astype(np.int32)
    macs = weights.size * CONVOLUTION.out_height * CONVOLUTION.out_width
    return macs * SMALL_RING / 8 / ring_seconds(CONVOLUTION, SMALL_RING, weights, REPEATS)[0]


def _gmw_rate() -> float:
    """The server's local work for one layer; all-zero material takes as long as any."""
    shape, words = RELUS, RELUS.words
    tree = shape.tree()
    material = gmw.Material(
        np.zeros((shape.w, words), np.uint64),
        np.zeros((5, tree.inner_count, words), np.uint64),
        np.zeros((3, words), np.uint64),
        np.zeros((6, shape.count), np.uint64),
    )
    masks, alpha = np.zeros((shape.w, words), np.uint64), np.zeros(shape.count, np.uint64)
    x = np.random.default_rng(1).integers(0, 1 << shape.w, shape.count, np.uint64)
    reshare = np.zeros(-(-shape.count * shape.k // 8), np.uint8)

    def layer() -> None:
        server = gmw.ReluServer(shape, material, masks, alpha, x)
        server.leaf_message()
        for level in range(server.level_count):
            server.close(level, server.open(level))
        planes, _ = server.final_message()
        server.finish(planes, reshare)

    return shape.count / best_seconds(layer, REPEATS)
