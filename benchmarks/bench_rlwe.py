#!/usr/bin/env python3
"""RLWE primitives beside SEAL's (through TenSEAL) in the same process, and a whole packed convolution.

    python benchmarks/bench_rlwe.py [--ring-bits 32] [--repeats 30] [--threads 1]

Prints JSON; every *_s is the best of `repeats` after one run that is not counted, [median, max] are under
"spread". SEAL runs BFV at the same degree with its own primes inside the same 128-bit table; one of them is
its special prime, so its ciphertexts have a smaller modulus than ours (72 of 109 bits at n = 4096), which
favours it. A SEAL product is multiply_plain of a ciphertext and a plaintext that both are in NTT form.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable

import numpy as np

from sphynx.core import Prg, _native
from sphynx.core import rlwe as he
from sphynx.core.conv_shape import ConvShape

SEAL_PRIME_BITS = {4096: [36, 36, 37], 8192: [36, 36, 36, 36, 36]}


class Clock:
    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self.seconds: dict[str, float] = {}
        self.spread: dict[str, list[float]] = {}

    def time(self, key: str, work: Callable[[], object], per: int = 1) -> None:
        work()
        times = []
        for _ in range(self.repeats):
            started = time.perf_counter()
            work()
            times.append((time.perf_counter() - started) / per)
        self.seconds[key] = min(times)
        self.spread[key] = [statistics.median(times), max(times)]


def time_ours(clock: Clock, params: he.Params, threads: int) -> None:
    native, prg, n = _native.rlwe, Prg(), params.n
    inputs, replies = 10, 20
    key = native.SecretKey(params, prg)
    public = native.PublicKey(params, key.public_key(prg))
    messages = np.random.default_rng(0).integers(0, 2**params.ring_bits, (inputs, n), np.uint64, endpoint=False)
    upload = key.encrypt(messages, prg, threads)
    parsed = native.Ciphertexts(params, upload, inputs, threads)
    weights = native.Weights(params, replies, inputs)
    polynomials = np.random.default_rng(1).integers(-127, 128, (inputs, n)).astype(np.int32)
    for reply in range(replies):
        weights.set_reply(reply, polynomials, threads)
    used, share = np.arange(n, dtype=np.uint32), np.empty(n * replies, np.uint64)
    counts = [n] * replies
    wire = native.reply(public, weights, [parsed], 1, used, counts, prg, share, threads)
    values = np.zeros(n, np.int32)

    clock.time("rlwe_transform_one_prime_s", lambda: params.transform(0, True, values))
    clock.time("rlwe_plaintext_transform_s", lambda: weights.set_reply(0, polynomials, threads), inputs)
    clock.time("rlwe_encrypt_s", lambda: key.encrypt(messages, prg, threads), inputs)
    clock.time("rlwe_parse_s", lambda: native.Ciphertexts(params, upload, inputs, threads), inputs)
    clock.time("rlwe_product_s", lambda: native.time_products(weights, [parsed], threads), inputs * replies)
    clock.time(
        "rlwe_reply_s",
        lambda: native.reply(public, weights, [parsed], 1, used, counts, prg, share, threads),
        replies,
    )
    clock.time("rlwe_decrypt_s", lambda: key.decrypt(wire, used, counts, 1, share, threads), replies)


def time_seal(clock: Clock, n: int) -> None:
    import tenseal.sealapi as seal

    settings = seal.EncryptionParameters(seal.SCHEME_TYPE.BFV)
    settings.set_poly_modulus_degree(n)
    settings.set_coeff_modulus(seal.CoeffModulus.Create(n, SEAL_PRIME_BITS[n]))
    settings.set_plain_modulus(seal.Modulus(2**32))
    context = seal.SEALContext(settings, True, seal.SEC_LEVEL_TYPE.TC128)
    keys = seal.KeyGenerator(context)
    public = seal.PublicKey()
    keys.create_public_key(public)
    symmetric = seal.Encryptor(context, keys.secret_key())
    asymmetric = seal.Encryptor(context, public)
    decryptor, evaluator = seal.Decryptor(context, keys.secret_key()), seal.Evaluator(context)

    terms = [f"{(i * 2654435761) % 2**32:X}" + (f"x^{i}" if i else "") for i in reversed(range(n))]
    message, ciphertext, out = seal.Plaintext(" + ".join(terms)), seal.Ciphertext(), seal.Plaintext()
    clock.time("seal_encrypt_symmetric_s", lambda: symmetric.encrypt_symmetric(message, ciphertext))
    clock.time("seal_encrypt_s", lambda: asymmetric.encrypt(message, ciphertext))
    clock.time("seal_decrypt_s", lambda: decryptor.decrypt(ciphertext, out))

    transformed, plain = seal.Ciphertext(), seal.Plaintext()
    evaluator.transform_to_ntt(ciphertext, transformed)
    evaluator.transform_to_ntt(message, ciphertext.parms_id(), plain)
    product, total = seal.Ciphertext(), seal.Ciphertext()
    scratch = seal.Plaintext()
    clock.time(
        "seal_plaintext_transform_s",
        lambda: evaluator.transform_to_ntt(message, ciphertext.parms_id(), scratch),
    )
    clock.time("seal_product_s", lambda: evaluator.multiply_plain(transformed, plain, product))
    clock.time("seal_add_s", lambda: evaluator.add(product, product, total))


def time_convolution(clock: Clock, params: he.Params, threads: int) -> dict[str, int]:
    """Offline work for one 80 -> 80 3x3 convolution on 8x8, all of it."""
    rng = np.random.default_rng(2)
    shape = ConvShape.square(80, (8, 8), 80, 3, padding=1)
    plan = he.plan(params, shape)
    weights = rng.integers(-127, 128, (80, 80, 3, 3)).astype(np.int32)
    mask = rng.integers(0, 2**params.ring_bits, (80, 8, 8), np.uint64, endpoint=False)
    client = he.LinearClient(params, Prg(), threads)
    server = he.LinearServer(params, client.public_key(), Prg(), threads)
    prepared = he.PreparedConv(params, plan, [weights], threads)

    def whole() -> None:
        upload = client.encrypt(plan.layouts[0], mask)
        reply, _ = server.reply(prepared, [server.parse(plan.layouts[0], upload)])
        client.decrypt(plan, reply)

    clock.time("rlwe_conv_80_8x8_80_k3_s", whole)
    return {
        "conv_upload_bytes": he.upload_bytes(params, plan.layouts[0]),
        "conv_reply_bytes": he.reply_bytes(params, plan),
        "conv_products": plan.products,
        "conv_prepared_weights_bytes": prepared.bytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ring-bits", type=int, default=32)
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    params = he.Params.for_ring(arguments.ring_bits)
    clock = Clock(arguments.repeats)
    time_ours(clock, params, arguments.threads)
    counts = time_convolution(clock, params, arguments.threads)
    report: dict[str, object] = {
        "machine": platform.machine(),
        "path": _native.rlwe.path(),
        "ring_bits": params.ring_bits,
        "degree": params.n,
        "modulus_bits": params.modulus_bits,
        "threads": arguments.threads,
        "repeats": arguments.repeats,
    }
    try:
        time_seal(clock, params.n)
        report["seal_modulus_bits"] = sum(SEAL_PRIME_BITS[params.n][:-1])
        seconds = clock.seconds
        report["product_speedup"] = seconds["seal_product_s"] / seconds["rlwe_product_s"]
        report["encrypt_speedup"] = seconds["seal_encrypt_symmetric_s"] / seconds["rlwe_encrypt_s"]
        report["decrypt_speedup"] = seconds["seal_decrypt_s"] / seconds["rlwe_decrypt_s"]
        report["plaintext_transform_speedup"] = (
            seconds["seal_plaintext_transform_s"] / seconds["rlwe_plaintext_transform_s"]
        )
    except ImportError:
        report["seal"] = "TenSEAL is not installed: pip install tenseal"
    print(json.dumps({**report, **clock.seconds, **counts, "spread": clock.spread}, indent=2))


if __name__ == "__main__":
    main()
