"""Rates of the symmetric core, each beside the machine's own AES bound, measured in the same run.

    python benchmarks/bench_core.py [--json] [--repeats 15]

Every rate is the best of the repeats: other work on the machine only ever slows one down. On one core the
clock is the thread's CPU time, so waiting for a turn does not count; on all cores it is wall time. A garbled
AND costs four AES blocks and an evaluated one two, so the bounds are a quarter and a half of the AES rate of
the same number of threads. Garbling includes drawing the server's input labels and streaming all tables to
memory; the client's labels come from OT, which is measured apart. An OT's rate is that of the slower party.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from sphynx.core import Prg, _native, cpu_features, garbling, ot

Words = NDArray[np.uint64]

W, K, F, RELUS = 32, 32, 8, 5120  # one layer of the 25.6K-ReLU network
OTS = 1 << 17
OT_PARAMETERS = (1, 2, 4, 8)
DEFAULT_OT_PARAMETER = 4


def best_seconds(threads: int, repeats: int, work: Callable[[], object]) -> float:
    clock = time.thread_time if threads == 1 else time.perf_counter
    best = float("inf")
    for _ in range(repeats):
        start = clock()
        work()
        best = min(best, clock() - start)
    return best


def aes_blocks_per_s(threads: int, repeats: int) -> float:
    """Fixed-key encryption of buffers that stay in the second-level cache, one buffer a thread."""
    count, rounds = 1 << 14, 8
    buffers = [np.zeros((count, 2), np.uint64) for _ in range(threads)]

    def encrypt(buffer: Words) -> None:
        for _ in range(rounds):
            _native.aes_encrypt(bytes(16), buffer, buffer)

    if threads == 1:
        seconds = best_seconds(1, 4 * repeats, lambda: encrypt(buffers[0]))
    else:
        with ThreadPoolExecutor(threads) as pool:
            seconds = best_seconds(threads, 4 * repeats, lambda: list(pool.map(encrypt, buffers)))
    return threads * count * rounds / seconds


def garbling_rates(threads: int, repeats: int) -> dict[str, float]:
    circuit, prg, key = garbling.relu_circuit(W, K, F), Prg(), bytes(16)
    delta = garbling.random_delta(prg)
    zeros = garbling.random_labels(prg, 2 * W + K, RELUS)
    tables = np.zeros((2 * circuit.and_count * RELUS, 2), np.uint64)
    colours = np.zeros((K, RELUS // 64), np.uint64)

    def garble() -> None:
        prg.fill_words(zeros[:W])
        circuit.garble(key, delta, 0, RELUS, zeros, tables, colours, threads)

    def evaluate() -> None:
        circuit.evaluate(key, 0, RELUS, zeros, tables, colours, threads)

    ands = circuit.and_count * RELUS
    # Bound and rates take turns, so that a slow spell of the machine hits both.
    rates = {"aes_blocks_per_s": 0.0, "garble_ands_per_s": 0.0, "evaluate_ands_per_s": 0.0}
    for _ in range(3):
        rates["aes_blocks_per_s"] = max(rates["aes_blocks_per_s"], aes_blocks_per_s(threads, repeats))
        rates["garble_ands_per_s"] = max(rates["garble_ands_per_s"], ands / best_seconds(threads, repeats, garble))
        rates["evaluate_ands_per_s"] = max(
            rates["evaluate_ands_per_s"], ands / best_seconds(threads, repeats, evaluate)
        )
    rates["garble_bound_ratio"] = rates["garble_ands_per_s"] / (rates["aes_blocks_per_s"] / 4)
    rates["evaluate_bound_ratio"] = rates["evaluate_ands_per_s"] / (rates["aes_blocks_per_s"] / 2)
    return rates


def connected(k: int) -> tuple[ot.OtReceiver, ot.OtSender]:
    """Both parties after ideal base OTs."""
    prg = Prg()
    delta = garbling.random_delta(prg)
    pairs = np.empty((ot.BASE_OTS, 2, 2), np.uint64)
    prg.fill_words(pairs)
    receiver = ot.OtReceiver(k, pairs)
    bits = np.unpackbits(delta[0].view(np.uint8), bitorder="little")
    keys = np.ascontiguousarray(pairs[np.arange(ot.BASE_OTS), bits])
    return receiver, ot.OtSender(k, delta, keys, receiver.setup)


def ot_rates(k: int, threads: int, repeats: int) -> dict[str, float]:
    """Random OTs and Boolean triples, two OTs each."""
    receiver, sender = connected(k)
    message = receiver.correlated_random(OTS, threads=threads)[0]

    def receive() -> tuple[Words, Words]:
        _, choices, t = receiver.correlated_random(OTS, threads=threads)
        return choices, receiver.pads(t, threads=threads)

    def send() -> ot.PadPair:
        return sender.pads(sender.correlated(message, OTS, random_choices=True, threads=threads), threads=threads)

    slower = max(best_seconds(threads, repeats, receive), best_seconds(threads, repeats, send))
    slower_triples = max(
        best_seconds(threads, repeats, lambda: ot.receiver_triples(*receive())),
        best_seconds(threads, repeats, lambda: ot.sender_triples(send())),
    )
    return {
        "ot_per_s": OTS / slower,
        "ot_bytes_each": message.nbytes / OTS,
        "triples_per_s": OTS / 2 / slower_triples,
    }


def measure(repeats: int) -> dict[str, object]:
    cores = len(os.sched_getaffinity(0))
    results: dict[str, object] = {
        "machine": f"{platform.machine()}, {cores} cores, AES path {cpu_features().aes_path}",
        "circuit": f"ReLU w={W} k={K} f={F}, {RELUS} instances",
    }
    results |= garbling_rates(1, repeats)
    results |= ot_rates(DEFAULT_OT_PARAMETER, 1, repeats)
    results["all_cores"] = garbling_rates(cores, repeats) | ot_rates(DEFAULT_OT_PARAMETER, cores, repeats)
    results["ot_by_parameter"] = [{"k": k} | ot_rates(k, 1, repeats) for k in OT_PARAMETERS]
    return results


def print_table(results: dict[str, object]) -> None:
    for name, value in results.items():
        if isinstance(value, dict):
            print(f"{name}:")
            print_table({f"  {key}": inner for key, inner in value.items()})
        elif isinstance(value, list):
            print(f"{name}:")
            for row in value:
                print("  " + "  ".join(f"{key} {inner:,.4g}" for key, inner in row.items()))
        elif isinstance(value, float):
            print(f"{name:24} {value / 1e6:10.1f} M" if value > 1e5 else f"{name:24} {value:10.3f}")
        else:
            print(f"{name:24} {value}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--repeats", type=int, default=15)
    arguments = parser.parse_args()
    results = measure(arguments.repeats)
    if arguments.json:
        print(json.dumps(results, indent=2))
    else:
        print_table(results)


if __name__ == "__main__":
    main()
