"""RLWE primitives, and a whole packed convolution. One thread. Its peer, SEAL, is in seal.py."""

from __future__ import annotations

import numpy as np

from benchmarks.core.seal import seal_times
from sphynx.bench.core_rates import primitive_times
from sphynx.bench.machine import best_seconds
from sphynx.core import Prg
from sphynx.core import rlwe as he
from sphynx.core.conv_shape import ConvShape

RING_BITS = (32, 64)
COMPARED = ("product", "plaintext_ntt", "encrypt", "decrypt")


def convolution_times(params: he.Params, repeats: int) -> dict[str, float]:
    """Offline work of both parties for one 80 -> 80 3x3 convolution on 8x8, all of it."""
    rng = np.random.default_rng(2)
    shape = ConvShape.square(80, (8, 8), 80, 3, padding=1)
    plan = he.plan(params, shape)
    weights = rng.integers(-127, 128, (80, 80, 3, 3)).astype(np.int32)
    mask = rng.integers(0, 2**params.ring_bits, (80, 8, 8), np.uint64, endpoint=False)
    client = he.LinearClient(params, Prg(), 1)
    server = he.LinearServer(params, client.public_key(), Prg(), 1)
    prepared = he.PreparedConv(params, plan, [weights], 1)

    def whole() -> None:
        upload = client.encrypt(plan.layouts[0], mask)
        reply, _ = server.reply(prepared, [server.parse(plan.layouts[0], upload)])
        client.decrypt(plan, reply)

    return {
        "rlwe_conv_80_8x8_80_k3_s": best_seconds(whole, repeats),
        "rlwe_conv_upload_bytes": he.upload_bytes(params, plan.layouts[0]),
        "rlwe_conv_reply_bytes": he.reply_bytes(params, plan),
        "rlwe_conv_products": plan.products,
        "rlwe_conv_prepared_weights_bytes": prepared.bytes,
    }


def rlwe_times(ring_bits: int, repeats: int) -> dict[str, float | None]:
    """Ours, SEAL's, and how many times faster ours are; SEAL's are None where TenSEAL is not installed."""
    params = he.Params.for_ring(ring_bits)
    times: dict[str, float | None] = {
        "rlwe_ring_bits": ring_bits,
        "rlwe_degree": params.n,
        "rlwe_modulus_bits": params.modulus_bits,
        **primitive_times(params, repeats),
        **seal_times(params.n, repeats),
        **convolution_times(params, repeats),
    }
    for name in COMPARED:
        ours, peers = times[f"rlwe_{name}_s"], times[f"seal_{name}_s"]
        times[f"{name}_speedup"] = peers / ours if ours and peers else None
    return times
