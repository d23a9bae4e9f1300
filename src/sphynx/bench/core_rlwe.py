"""RLWE primitives, and a whole packed convolution. One thread. Its peer, SEAL, is in seal.py."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sphynx.bench.machine import best_seconds
from sphynx.bench.seal import seal_times
from sphynx.core import Prg, _native
from sphynx.core import rlwe as he
from sphynx.core.conv_shape import ConvShape

RING_BITS = (32, 64)
INPUTS, REPLIES = 10, 20  # products per reply, and replies per call
COMPARED = ("product", "plaintext_ntt", "encrypt", "decrypt")


def primitive_times(params: he.Params, repeats: int) -> dict[str, float]:
    """Seconds per polynomial, each from a call on several, as a layer makes them."""
    native, prg, n = _native.rlwe, Prg(), params.n
    key = native.SecretKey(params, prg)
    public = native.PublicKey(params, key.public_key(prg))
    rng = np.random.default_rng(0)
    messages = rng.integers(0, 2**params.ring_bits, (INPUTS, n), np.uint64, endpoint=False)
    upload = key.encrypt(messages, prg, 1)
    parsed = native.Ciphertexts(params, upload, INPUTS, 1)
    weights = native.Weights(params, REPLIES, INPUTS, n)
    polynomials = rng.integers(-127, 128, (INPUTS, n)).astype(np.int32)
    for index in range(REPLIES):
        weights.set_reply(index, polynomials, 1)
    used, counts = np.arange(n, dtype=np.uint32), [n] * REPLIES
    share = np.empty(n * REPLIES, np.uint64)
    values = np.zeros(n, np.int32)

    def reply() -> bytes:
        return native.reply(public, weights, [parsed], 1, used, counts, prg, share, 1)

    wire = reply()

    def each(work: Callable[[], object], calls: int) -> float:
        return best_seconds(work, repeats) / calls

    return {
        "rlwe_ntt_one_prime_s": each(lambda: params.transform(0, True, values), 1),
        "rlwe_plaintext_ntt_s": each(lambda: weights.set_reply(0, polynomials, 1), INPUTS),
        "rlwe_encrypt_s": each(lambda: key.encrypt(messages, prg, 1), INPUTS),
        "rlwe_parse_s": each(lambda: native.Ciphertexts(params, upload, INPUTS, 1), INPUTS),
        "rlwe_product_s": each(lambda: native.time_products(weights, [parsed], 1), INPUTS * REPLIES),
        "rlwe_reply_s": each(reply, REPLIES),
        "rlwe_decrypt_s": each(lambda: key.decrypt(wire, used, counts, 1, share, 1), REPLIES),
    }


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
