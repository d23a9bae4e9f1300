"""RLWE against outside truth: Python integers (transforms, CRT, wire format, whole replies) and SEAL."""

from __future__ import annotations

import random
from math import isqrt, prod

import numpy as np
import pytest

from sphynx.core import Prg, _native
from tests.core import rlwe_reference as reference
from tests.core import seal_vectors
from tests.core.seal_vectors import sparse_weights

native = _native.rlwe
RINGS = (32, 48, 64)  # one per parameter set
# Largest bits of q for a ternary secret, 128 bits, classical: eprint 2024/463, Table 5.2.
TABLE = {4096: 106, 8192: 214}


@pytest.mark.parametrize("bits", RINGS)
def test_transform_is_evaluation_at_the_odd_powers(bits: int, path: str) -> None:
    assert path
    params = native.Params.for_ring(bits)
    for prime, p in enumerate(params.primes):
        poly = [random.Random(prime).randrange(p) for _ in range(params.n)]
        values = reference.ntt(params, prime, poly)
        points = reference.evaluation_points(p, params.n)
        for i in (0, 1, 2, 77, params.n // 2, params.n - 1):
            assert values[i] == reference.evaluate(poly, points[i], p)
        assert reference.inverse_ntt(params, prime, values) == poly


@pytest.mark.parametrize("bits", RINGS)
def test_server_answers_a_client_written_in_python_integers(bits: int) -> None:
    params = native.Params.for_ring(bits)
    rng = random.Random(11)
    client = reference.ReferenceClient(params, seed=12)
    ring, n, inputs = 1 << params.ring_bits, params.n, 2
    messages = [[rng.randrange(ring) for _ in range(n)] for _ in range(inputs)]
    polynomials = [sparse_weights(rng, n, 60, 127) for _ in range(inputs)]
    weights = native.Weights(params, 1, inputs, params.n)
    weights.set_reply(0, np.array(polynomials, np.int32))
    key = native.PublicKey(params, client.encrypt([0] * n))
    uploads = native.Ciphertexts(params, b"".join(client.encrypt(m) for m in messages), inputs)
    used = np.array(rng.sample(range(n), 50), np.uint32)
    share = np.zeros(50, np.uint64)
    wire = native.reply(key, weights, [uploads], 1, used, [50], Prg(), share)
    products = [reference.negacyclic(m, w, ring) for m, w in zip(messages, polynomials, strict=True)]
    expected = [sum(poly[int(at)] for poly in products) % ring for at in used]
    ours = client.decrypt(wire, used)
    assert [(a + int(b)) % ring for a, b in zip(ours, share, strict=True)] == expected


def test_parameters_outside_the_security_table_are_refused() -> None:
    assert {n: native.max_modulus_bits(n) for n in (2048, *TABLE, 16384)} == {2048: 0, **TABLE, 16384: 0}
    native.Params.make(4096, 32, [28, 28, 27, 23], 3)
    for n, bits in ((4096, [28, 28, 28, 23]), (2048, [27]), (8192, [28] * 8), (16384, [28] * 4), (4096, [29, 29])):
        with pytest.raises(ValueError):
            native.Params.make(n, 32, bits, 1)
    for ring_bits in (-1, 0, 7, 65, 2**31 - 1):
        with pytest.raises(ValueError):
            native.Params.for_ring(ring_bits)


def test_every_ring_width_keeps_to_the_security_table_and_to_the_bound_on_errors() -> None:
    """2^-40 for each element in a fused 80 -> 80 cell of 41 + 25 taps, four output channels a reply, 8-bit weights."""
    weights, size, rms = 4 * 80 * (41 + 25), 127, 26
    for ring_bits in range(8, 65):
        params = native.Params.for_ring(ring_bits)
        assert prod(params.primes) < 2 ** TABLE[params.n]
        assert len(set(params.primes)) == len(params.primes)
        for p in params.primes:
            assert p % (2 * params.n) == 1
            assert all(p % divisor for divisor in range(3, isqrt(p) + 1, 2))
        assert params.noise(size * weights, rms**2 * weights)[2] < -40


def test_own_sets_agree_with_seals_table() -> None:
    seal = pytest.importorskip("tenseal.sealapi")
    for params in map(native.Params.for_ring, RINGS):
        assert prod(params.primes).bit_length() <= seal.CoeffModulus.MaxBitCount(params.n, seal.SEC_LEVEL_TYPE.TC128)


def test_products_agree_with_seal() -> None:
    """The same message and weights through SEAL's BFV at t = 2^32: kept, and asked again where SEAL is installed, when
    its noise is seen to be of the size that we predict."""
    params, n = native.Params.make(seal_vectors.N, seal_vectors.RING_BITS, [28, 28, 27, 23], 4), seal_vectors.N
    message, weights = seal_vectors.factors()
    theirs = seal_vectors.kept_product()
    prg = Prg()
    secret = native.SecretKey(params, prg)
    prepared = native.Weights(params, 1, 1, params.n)
    prepared.set_reply(0, np.array([weights], np.int32))
    upload = native.Ciphertexts(params, secret.encrypt(np.array([message], np.uint64), prg), 1)
    used, share, ours = np.arange(n, dtype=np.uint32), np.zeros(n, np.uint64), np.zeros(n, np.uint64)
    wire = native.reply(native.PublicKey(params, secret.public_key(prg)), prepared, [upload], 1, used, [n], prg, share)
    secret.decrypt(wire, used, [n], 1, ours)
    assert np.array_equal((ours + share) % np.uint64(1 << seal_vectors.RING_BITS), theirs)

    seal = pytest.importorskip("tenseal.sealapi")
    again, budget_bits = seal_vectors.ask_seal(seal)
    assert np.array_equal(again, theirs)
    # SEAL's noise budget is log2(q / (2 t |noise|)) for the largest coefficient, at its 72-bit data level.
    l1, l2 = sum(map(abs, weights)), sum(w * w for w in weights)
    worst, rms, _ = params.noise(l1, l2)
    largest_bits = 72 - 32 - 1 - budget_bits
    assert np.log2(rms) - 1 <= largest_bits <= np.log2(worst)


def test_shares_are_off_by_one_as_often_as_predicted() -> None:
    """At a reply modulus so small that it can be counted; the formula is the one that vouches for real sets."""
    params, replies = native.Params.make(4096, 47, [28, 28, 23], 2), 16
    ring, n, rng = 2**params.ring_bits, params.n, random.Random(31)
    message = [rng.randrange(ring) for _ in range(n)]
    polynomials = [sparse_weights(rng, n, 20, 127) for _ in range(replies)]
    prg = Prg()
    secret = native.SecretKey(params, prg)
    weights = native.Weights(params, replies, 1, params.n)
    for reply, polynomial in enumerate(polynomials):
        weights.set_reply(reply, np.array([polynomial], np.int32))
    upload = native.Ciphertexts(params, secret.encrypt(np.array([message], np.uint64), prg), 1)
    used, counts = np.arange(n, dtype=np.uint32), [n] * replies
    server, client = np.zeros(n * replies, np.uint64), np.zeros(n * replies, np.uint64)
    key = native.PublicKey(params, secret.public_key(prg))
    wire = native.reply(key, weights, [upload], 1, used, counts, prg, server)
    secret.decrypt(wire, used, counts, 1, client)
    expected = [x for polynomial in polynomials for x in reference.negacyclic(message, polynomial, ring)]
    errors = (server + client - np.array(expected, np.uint64)) % np.uint64(ring)
    assert set(errors.tolist()) == {0, 1, ring - 1}
    predicted = n * replies * 2 ** params.noise(0, 0)[2]  # the weights' own noise vanishes with the dropped prime
    assert np.count_nonzero(errors) == pytest.approx(predicted, rel=0.2)  # some 1,600, give or take 40


def test_the_phase_a_client_sees_is_uniform_and_fresh() -> None:
    """With the secret key in hand: phases of a constant reply fill Z_q' evenly, and no reply repeats."""
    params = native.Params.for_ring(32)
    client = reference.ReferenceClient(params, seed=3)
    n, q = params.n, prod(params.primes[: params.reply_primes])
    key = native.PublicKey(params, client.encrypt([0] * n))
    upload = native.Ciphertexts(params, client.encrypt([5] * n), 1)
    weights = native.Weights(params, 1, 1, params.n)
    weights.set_reply(0, np.array([[1] + [0] * (n - 1)], np.int32))
    used, share = np.arange(n, dtype=np.uint32), np.zeros(n, np.uint64)
    prg = Prg()
    first = native.reply(key, weights, [upload], 1, used, [n], prg, share)
    second = native.reply(key, weights, [upload], 1, used, [n], prg, share)
    # c1 alone would reveal the weights; a fresh Enc(0) changes every part of it.
    different = np.frombuffer(first, np.uint8) != np.frombuffer(second, np.uint8)
    assert different.mean() > 0.99
    phases = client.phases(first, used)
    counts = np.bincount([16 * x // q for x in phases], minlength=16)
    chi_square = float(((counts - n / 16) ** 2 / (n / 16)).sum())
    assert chi_square < 50  # 15 degrees of freedom: one run in 80,000 exceeds it
