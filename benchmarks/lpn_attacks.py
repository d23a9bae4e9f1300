#!/usr/bin/env python3
"""Costs of the attacks on silent OT's parameters, as docs/security/silent-ot.md states them.

    python -m benchmarks.lpn_attacks            (some 20 s: one attack is tried on a code as it is drawn)

An instance is x A + e with k unknown bits x, n = t 2^d samples, one error in each block of 2^d of them, and ten ones in
each row of the code A, one in each tenth of the unknowns. Costs are binary logarithms of bit operations, all of them
rounded in the attacker's favour:

    information set   k samples without an error, and a dense linear system
    sparse core       the same on the smallest part of the unknowns that has as many samples of its own, found by
                      dropping the unknowns in fewest samples first; a sparse system in s unknowns takes 20 s^2
    algebraic         eprint 2023/176: products of two samples of a block vanish, error-free samples are guessed in some
                      blocks, and monomials of degree 2 to 4 are eliminated by Wiedemann's algorithm
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sphynx.core.silent import SHAPE, Shape

ROW_WEIGHT = 10
DENSE_EXPONENT = 2.8  # of elimination in practice
BLOCK_STEPS = 64  # numbers of blocks that are tried
SPARSE_FACTOR = 20  # 2 s products by a matrix with ten ones in each row


def samples(shape: Shape) -> int:
    return shape.trees << shape.depth


def information_set_bits(shape: Shape) -> float:
    """Cost of guessing k samples without an error, as many in each block."""
    rate = shape.secret / samples(shape)
    return -shape.trees * math.log2(1 - rate) + DENSE_EXPONENT * math.log2(shape.secret)


def core_size(shape: Shape, seed: int = 1) -> int:
    """Peel a code drawn at random down to the smallest part with as many samples as unknowns; return its unknowns."""
    region = shape.secret // ROW_WEIGHT
    rows = np.random.default_rng(seed).integers(0, region, (samples(shape), ROW_WEIGHT), np.int32)
    rows += np.arange(0, shape.secret, region, dtype=np.int32)
    kept, size = np.ones(shape.secret, np.bool_), shape.secret
    while True:
        degrees = np.bincount(rows.ravel(), minlength=shape.secret)
        degrees[~kept] = samples(shape) + 1
        dropped = max(1, size // 200)
        kept[np.argpartition(degrees, dropped)[:dropped]] = False
        rows = rows[kept[rows].all(axis=1)]
        if len(rows) < size - dropped:
            return size
        size -= dropped


def sparse_core_bits(shape: Shape, size: int) -> float:
    """Cost of guessing `size` samples of the core without an error, and solving for its unknowns."""
    return -size * math.log2(1 - 2.0**-shape.depth) + math.log2(SPARSE_FACTOR * size**2)


@dataclass(frozen=True)
class Algebraic:
    bits: float
    degree: int
    guessed: int  # samples per block
    blocks: int  # in which samples are guessed


def algebraic(shape: Shape) -> Algebraic:
    """The cheapest of degrees 2 to 4 and of guesses, as many in each of some blocks. Guesses in all blocks come in
    steps of t samples, too large to find the least."""
    block, free = 1 << shape.depth, shape.secret - shape.trees
    costs = []
    for blocks in range(0, shape.trees + 1, max(1, shape.trees // BLOCK_STEPS)):
        for guessed in range(min(block - 1, (free - 1) // blocks + 1) if blocks else 1):
            degree = _solving_degree(shape, guessed, blocks)
            if degree is None:
                continue
            unknowns = free - guessed * blocks
            monomials = math.log2(math.comb(max(unknowns, degree), degree))
            guess = -blocks * math.log2(1 - guessed / block)
            bits = guess + math.log2(3 * unknowns) + 2 * monomials
            costs.append(Algebraic(bits, degree, guessed, blocks))
    return min(costs, key=lambda cost: cost.bits)


def _solving_degree(shape: Shape, guessed: int, blocks: int) -> int | None:
    """The first degree up to 4 at which the Hilbert series of the system, over two elements, has no positive term left.

    The series is (1 + (2^d - 1 - guessed) z)^blocks (1 + (2^d - 1) z)^(t - blocks) / (1 + z)^(n - k - t): a monomial
    has at most one sample of a block, and the code's parity checks are linear equations."""
    variables, checks = (1 << shape.depth) - 1, samples(shape) - shape.secret - shape.trees
    fewer = [math.comb(blocks, i) * (variables - guessed) ** i for i in range(5)]
    others = [math.comb(shape.trees - blocks, i) * variables**i for i in range(5)]
    reduced = [(-1) ** i * math.comb(checks + i - 1, i) for i in range(5)]
    of_all = [sum(fewer[i] * others[degree - i] for i in range(degree + 1)) for degree in range(5)]
    for degree in range(2, 5):
        if sum(of_all[i] * reduced[degree - i] for i in range(degree + 1)) <= 0:
            return degree
    return None


def main() -> None:
    size = core_size(SHAPE)
    found = algebraic(SHAPE)
    print(f"{SHAPE}: n = {samples(SHAPE):,}")
    print(f"information set   2^{information_set_bits(SHAPE):.1f}")
    print(f"sparse core       2^{sparse_core_bits(SHAPE, size):.1f}, {size:,} unknowns")
    guesses = f"{found.guessed} samples guessed in each of {found.blocks:,} blocks"
    print(f"algebraic         2^{found.bits:.1f}, degree {found.degree}, {guesses}")


if __name__ == "__main__":
    main()
