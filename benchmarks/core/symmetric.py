"""AES, half-gates garbling, OT extension and triples, each beside the AES bound of the same run.

A garbled AND costs four AES blocks and an evaluated one two, so their bounds are a quarter and a half of the
fixed-key AES rate of the same number of threads. Garbling includes expanding the server's input labels from their
seed, as the protocol does, and streaming all tables to memory; the client's labels come from OT, which is measured
apart. An OT's rate is that of the slower party, the sender: it expands all trees and hashes twice.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sphynx.bench.core_rates import DEFAULT_OT_PARAMETER, ot_rates
from sphynx.bench.machine import best_seconds
from sphynx.core import Prg, _native, garbling, ot

Words = NDArray[np.uint64]

W, K, F, RELUS = 32, 32, 8, 5120  # one layer of the 25.6K-ReLU network
OT_PARAMETERS = (1, 2, 4, 8)
TURNS = 3  # bound and rates take turns, so that a slow spell of the machine hits both


def aes_rate(threads: int, repeats: int) -> dict[str, float]:
    """Fixed-key encryption, one buffer a thread: the better of buffers that stay in the second-level cache and of
    buffers so long that a call costs nothing."""
    return {"aes_blocks_per_s": max(_aes_rate(count, threads, repeats) for count in (1 << 14, 1 << 17))}


def _aes_rate(count: int, threads: int, repeats: int) -> float:
    rounds = (1 << 17) // count
    buffers = [np.zeros((count, 2), np.uint64) for _ in range(threads)]

    def encrypt(buffer: Words) -> None:
        for _ in range(rounds):
            _native.aes_encrypt(bytes(16), buffer, buffer)

    if threads == 1:
        seconds = best_seconds(partial(encrypt, buffers[0]), 4 * repeats)
    else:
        with ThreadPoolExecutor(threads) as pool:
            seconds = best_seconds(lambda: list(pool.map(encrypt, buffers)), 4 * repeats, threads=threads)
    return threads * count * rounds / seconds


def garbling_rates(threads: int, repeats: int) -> dict[str, float]:
    """Measure rates of garbling and evaluating a layer of ReLUs, with the AES rate that bounds them."""
    circuit, prg, key, seed = garbling.relu_circuit(W, K, F), Prg(), bytes(16), bytes(range(16))
    delta = garbling.random_delta(prg)
    zeros = garbling.random_labels(prg, 2 * W + K, RELUS)
    tables = np.zeros((2 * circuit.and_count * RELUS, 2), np.uint64)
    colours = np.zeros((K, RELUS // 64), np.uint64)

    def garble() -> None:
        _native.expand_seed(seed, 0, 0, zeros[:W], threads)
        circuit.garble(key, delta, 0, RELUS, zeros, tables, colours, None, threads)

    def evaluate() -> None:
        circuit.evaluate(key, 0, RELUS, zeros, tables, colours, None, threads)

    ands = circuit.and_count * RELUS
    aes = garbled = evaluated = 0.0
    for _ in range(TURNS):
        aes = max(aes, aes_rate(threads, repeats)["aes_blocks_per_s"])
        garbled = max(garbled, ands / best_seconds(garble, repeats, threads=threads))
        evaluated = max(evaluated, ands / best_seconds(evaluate, repeats, threads=threads))
    return {
        "aes_blocks_per_s": aes,
        "garble_ands_per_s": garbled,
        "evaluate_ands_per_s": evaluated,
        "garble_bound_ratio": garbled / (aes / 4),
        "evaluate_bound_ratio": evaluated / (aes / 2),
    }


def sender_aes_blocks(k: int) -> float:
    """Per OT: every leaf of every tree gives a block for 128 OTs, and both pads are hashed."""
    trees, rest = divmod(ot.BASE_OTS, k)
    leaves = (trees << k) + (1 << rest if rest else 0)
    return leaves / 128 + 2


def symmetric_rates(threads: int, repeats: int) -> dict[str, float]:
    """Everything here on `threads` threads, OTs at the parameter that the protocol takes."""
    rates = garbling_rates(threads, repeats) | ot_rates(DEFAULT_OT_PARAMETER, threads, repeats)
    bound = rates["aes_blocks_per_s"] / sender_aes_blocks(DEFAULT_OT_PARAMETER)
    rates["ot_bound_ratio"] = rates["ot_per_s"] / bound
    rates["triples_bound_ratio"] = rates["triples_per_s"] / (bound / 2)
    return rates


def ot_by_parameter(repeats: int) -> list[dict[str, float]]:
    return [{"ot_parameter": k, **ot_rates(k, 1, repeats)} for k in OT_PARAMETERS]
