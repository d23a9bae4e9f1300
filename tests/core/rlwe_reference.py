"""An RLWE client in Python integers that speaks the documented wire format: an outside check of the core.

It shares no arithmetic with the core except the forward transform, whose definition test_rlwe.py checks point
by point: products are taken of Python integers modulo the whole q.
"""

from __future__ import annotations

import random
from math import prod

import numpy as np
from numpy.typing import NDArray

from sphynx.core import _native

Poly = list[int]


def negacyclic(a: Poly, b: Poly, modulus: int) -> Poly:
    """a * b mod X^n + 1, by one big-integer product of coefficients spaced far enough apart."""
    n = len(a)
    width = (2 * modulus.bit_length() + n.bit_length() + 8) // 8
    pack = [
        int.from_bytes(b"".join((x % modulus).to_bytes(width, "little") for x in poly), "little") for poly in (a, b)
    ]
    digits = (pack[0] * pack[1]).to_bytes(2 * n * width, "little")
    wide = [int.from_bytes(digits[i * width : (i + 1) * width], "little") for i in range(2 * n)]
    return [(wide[i] - wide[i + n]) % modulus for i in range(n)]


def psi_of(p: int, n: int) -> int:
    """The smallest base's 2n-th primitive root, as the core defines it."""
    return next(r for x in range(2, p) if pow(r := pow(x, (p - 1) // (2 * n), p), n, p) == p - 1)


def evaluation_points(p: int, n: int) -> list[int]:
    """Output i of the transform is the value at psi^(2 bitrev(i) + 1)."""
    bits = n.bit_length() - 1
    psi = psi_of(p, n)
    return [pow(psi, 2 * int(format(i, f"0{bits}b")[::-1], 2) + 1, p) for i in range(n)]


def evaluate(poly: Poly, point: int, p: int) -> int:
    value = 0
    for c in reversed(poly):
        value = (value * point + c) % p
    return value


def ntt(params: _native.rlwe.Params, prime: int, poly: Poly) -> Poly:
    """Transform by the core's transform, whose definition test_rlwe.py checks against `evaluate`."""
    p = params.primes[prime]
    values = np.array([c % p for c in poly], np.int32)
    params.transform(prime, True, values)
    return [int(v) % p for v in values]


def inverse_ntt(params: _native.rlwe.Params, prime: int, values: Poly) -> Poly:
    p = params.primes[prime]
    array = np.array([v % p for v in values], np.int32)
    params.transform(prime, False, array)
    return [int(v) % p for v in array]


def crt(residues: list[int], primes: list[int]) -> int:
    q = prod(primes)
    return sum(r * (q // p) * pow(q // p, -1, p) for r, p in zip(residues, primes, strict=True)) % q


def pack(values: Poly, bits: int) -> bytes:
    whole = sum(v << (bits * i) for i, v in enumerate(values))
    return whole.to_bytes((len(values) * bits + 7) // 8, "little")


def unpack(wire: bytes, count: int, bits: int) -> tuple[Poly, bytes]:
    size = (count * bits + 7) // 8
    whole = int.from_bytes(wire[:size], "little")
    text = format(whole, f"0{count * bits}b")
    return [int(text[len(text) - bits * (i + 1) : len(text) - bits * i], 2) for i in range(count)], wire[size:]


def uniform(params: _native.rlwe.Params, seed: bytes) -> list[Poly]:
    """Per prime: 32-bit words of stream i of the seed, masked to the prime's bits, those below p kept.

    The core asks for what is missing in chunks of 1024 draws and starts each chunk at a whole block.
    """
    out = []
    for stream, p in enumerate(params.primes):
        kept: Poly = []
        block = 0
        while len(kept) < params.n:
            draws = min(params.n - len(kept), 1024)
            blocks = ((draws + 1) // 2 + 1) // 2
            words = np.zeros((blocks, 2), np.uint64)
            _native.expand_seed(seed, stream, block, words)
            block += blocks
            candidates = words.view(np.uint32).reshape(-1)[:draws] & ((1 << p.bit_length()) - 1)
            kept += [int(c) for c in candidates if c < p]
        out.append(kept)
    return out


class ReferenceClient:
    def __init__(self, params: _native.rlwe.Params, seed: int) -> None:
        self.params = params
        self.random = random.Random(seed)
        self.secret = [self.random.choice((-1, 0, 1)) for _ in range(params.n)]

    def encrypt(self, message: Poly) -> bytes:
        primes, n = self.params.primes, self.params.n
        q, ring = prod(primes), 1 << self.params.ring_bits
        seed = self.random.randbytes(16)
        error = [self.random.randint(-9, 9) for _ in range(n)]
        encoded = [(2 * q * m + ring) // (2 * ring) + e for m, e in zip(message, error, strict=True)]
        wire = seed
        for i, (p, a) in enumerate(zip(primes, uniform(self.params, seed), strict=True)):
            s, m = ntt(self.params, i, self.secret), ntt(self.params, i, encoded)
            wire += pack([(y - x * z) % p for x, y, z in zip(a, m, s, strict=True)], p.bit_length())
        return wire

    def phases(self, wire: bytes, used: NDArray[np.uint32]) -> list[int]:
        """c0 + c1 s modulo q' at the used coefficients, of one reply."""
        primes = self.params.primes[: self.params.reply_primes]
        q = prod(primes)
        c1, c0 = [], []
        for p in primes:
            values, wire = unpack(wire, self.params.n, p.bit_length())
            c1.append(values)
        for p in primes:
            values, wire = unpack(wire, len(used), p.bit_length())
            c0.append(values)
        assert not wire
        whole = [crt([c[i] for c in c1], primes) for i in range(self.params.n)]
        product = negacyclic(whole, self.secret, q)
        return [(crt([c[u] for c in c0], primes) + product[int(at)]) % q for u, at in enumerate(used)]

    def decrypt(self, wire: bytes, used: NDArray[np.uint32]) -> Poly:
        q = prod(self.params.primes[: self.params.reply_primes])
        ring = 1 << self.params.ring_bits
        return [(2 * ring * x + q) // (2 * q) % ring for x in self.phases(wire, used)]
