"""Rates of the compiled core on one machine: OT extension, RLWE primitives, ring convolution. `calibrate` estimates by
them, and `python -m benchmarks.core` sets them beside bounds and peers.

An OT's rate is that of the slower party, the sender: it expands all trees and hashes twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sphynx.bench.machine import best_seconds
from sphynx.core import Prg, _native, garbling, ot, random_bytes, silent
from sphynx.core import rlwe as he
from sphynx.core.bits import bit_values
from sphynx.core.conv_shape import ConvShape
from sphynx.core.ring import RingConv, ring_dtype

Words = NDArray[np.uint64]

OTS = 1 << 17
DEFAULT_OT_PARAMETER = 4
TWEAK = bytes(range(16))
INPUTS, FEW_INPUTS, REPLIES = 10, 2, 20  # products per reply, and replies per call
FEW = 8  # one of so many coefficients is used, where few are
MEMORY_BYTES = 96 << 20  # of weights that no cache holds


def connected(k: int, *, checked: bool = False, delta: Words | None = None) -> tuple[ot.OtReceiver, ot.OtSender]:
    """Make both parties of an OT extension after ideal base OTs, with a random offset unless it is given."""
    prg = Prg()
    delta = garbling.random_delta(prg) if delta is None else delta
    pairs = np.empty((ot.BASE_OTS, 2, 2), np.uint64)
    prg.fill_words(pairs)
    receiver = ot.OtReceiver(k, pairs, prg, checked=checked)
    bits = bit_values(delta[0])
    keys = np.ascontiguousarray(pairs[np.arange(ot.BASE_OTS), bits])
    return receiver, ot.OtSender(k, delta, keys, receiver.setup, prg, checked=checked)


def ot_rates(k: int, threads: int, repeats: int) -> dict[str, float]:
    """Random OTs without the check of consistency, and Boolean triples, which take two each."""
    receiver, sender = connected(k)
    message = receiver.correlated_random(OTS, threads=threads)[0]

    def receive() -> tuple[Words, Words]:
        _, choices, t = receiver.correlated_random(OTS, threads=threads)
        return choices, ot.received_pads(t, TWEAK, threads=threads)

    def send() -> ot.PadPair:
        labels = sender.correlated(message, OTS, random_choices=True, threads=threads)
        return sender.pads(labels.zeros, TWEAK, threads=threads)

    slower = max(best_seconds(party, repeats, threads=threads) for party in (receive, send))
    slower_triples = max(
        best_seconds(lambda: ot.receiver_triples(*receive()), repeats, threads=threads),
        best_seconds(lambda: ot.sender_triples(send()), repeats, threads=threads),
    )
    return {
        "ot_per_s": OTS / slower,
        "ot_bytes_each": message.nbytes / OTS,
        "triples_per_s": OTS / 2 / slower_triples,
    }


def silent_seconds() -> float:
    """CPU seconds of both parties that an OT takes more if it is silent, its trees not checked, than by SoftSpoken, of
    as many OTs. The clock is a thread's: others may share the machine."""
    count, prg = silent.SHAPE.usable, Prg()
    delta, session = garbling.random_delta(prg), random_bytes(prg, 16)
    few_receiver, few_sender = connected(DEFAULT_OT_PARAMETER, checked=True, delta=delta)
    seeding, _, t = few_receiver.correlated_random(silent.SHAPE.seeds)
    q = few_sender.correlated(seeding, silent.SHAPE.seeds, random_choices=True).zeros
    receiver = silent.SilentReceiver(session, t, checked=False)
    sender = silent.SilentSender(session, few_sender, delta, q, prg)

    def many() -> None:
        receiver.refill(sender.refill(threads=1), threads=1)
        message = receiver.correlated_random(count, threads=1)[0]
        sender.correlated(message, count, random_choices=True, threads=1)

    def few() -> None:
        message = few_receiver.correlated_random(count, threads=1)[0]
        few_sender.correlated(message, count, random_choices=True, threads=1)

    return max(_thread_seconds(many) - _thread_seconds(few), 0.0) / count


def _thread_seconds(work: Callable[[], None]) -> float:
    """Time the second call."""
    work()
    started = time.thread_time()
    work()
    return time.thread_time() - started


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
    used, share = np.arange(n, dtype=np.uint32), np.empty(n * REPLIES, np.uint64)
    all_used, few_used = [n] * REPLIES, [n // FEW] * REPLIES
    values = np.zeros(n, np.int32)

    def reply(counts: list[int]) -> bytes:
        own = share[: sum(counts)]
        return native.reply(public, weights, [parsed], 1, used, counts, prg, own, 1)

    def decrypt(wire: bytes, counts: list[int]) -> None:
        key.decrypt(wire, used, counts, 1, share[: sum(counts)], 1)

    whole, short = reply(all_used), reply(few_used)
    few_inputs = native.Ciphertexts(params, upload[: FEW_INPUTS * params.upload_bytes], FEW_INPUTS, 1)
    few_weights = native.Weights(params, REPLIES, FEW_INPUTS, n)

    def few_products() -> None:
        native.time_products(few_weights, [few_inputs], 1)

    def each(work: Callable[[], object], calls: int) -> float:
        return best_seconds(work, repeats) / calls

    return {
        "rlwe_ntt_one_prime_s": each(lambda: params.transform(0, True, values), 1),
        "rlwe_plaintext_ntt_s": each(lambda: weights.set_reply(0, polynomials, 1), INPUTS),
        "rlwe_encrypt_s": each(lambda: key.encrypt(messages, prg, 1), INPUTS),
        "rlwe_parse_s": each(lambda: native.Ciphertexts(params, upload, INPUTS, 1), INPUTS),
        "rlwe_product_s": each(lambda: native.time_products(weights, [parsed], 1), INPUTS * REPLIES),
        "rlwe_product_of_few_s": each(few_products, FEW_INPUTS * REPLIES),
        "rlwe_reply_s": each(lambda: reply(all_used), REPLIES),
        "rlwe_reply_few_s": each(lambda: reply(few_used), REPLIES),
        "rlwe_decrypt_s": each(lambda: decrypt(whole, all_used), REPLIES),
        "rlwe_decrypt_few_s": each(lambda: decrypt(short, few_used), REPLIES),
    }


def memory_product_seconds(params: he.Params, repeats: int) -> float:
    """Seconds of a product whose weights come from memory, as those of a network do; of the others they are in a cache
    after the first."""
    native, prg, n = _native.rlwe, Prg(), params.n
    key, messages = native.SecretKey(params, prg), np.zeros((INPUTS, n), np.uint64)
    parsed = native.Ciphertexts(params, key.encrypt(messages, prg, 1), INPUTS, 1)
    replies = MEMORY_BYTES // (4 * len(params.primes) * INPUTS * n)
    weights = native.Weights(params, replies, INPUTS, n)  # in the pages that a server's are in
    work = partial(native.time_products, weights, [parsed], 1)
    return best_seconds(work, repeats) / (replies * INPUTS)


def ring_seconds(shape: ConvShape, ring_bits: int, weights: NDArray[np.int32], repeats: int) -> tuple[float, str]:
    """Seconds, and the path that was taken."""
    conv = RingConv(shape, ring_bits, weights)
    extents = (shape.in_channels, shape.height, shape.width)
    elements = np.random.default_rng(1).integers(0, 2**63, extents, np.uint64)
    tensor: NDArray[Any] = elements.astype(ring_dtype(ring_bits))
    return best_seconds(lambda: conv(tensor, 1), repeats), conv.native.path
