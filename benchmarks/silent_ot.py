#!/usr/bin/env python3
"""Silent OT beside SoftSpoken: bytes and CPU for each OT, and what becomes of the OTs of a network.

    python -m benchmarks.silent_ot stream-cifar100-25k

CPU is that of one thread of each party, without the hashing to pads, which is the same for both: for SoftSpoken an
extension with its check; for silent OT a batch that follows another one, with the trees, the seeds of the batch, the
check where the receiver makes it, and the extension. Bytes are those of the messages that were made, and are held equal
to the formula. Ratios are to SoftSpoken with k = 4 in the same run. The best of three.

A network's OTs are those of gmw, as the estimate counts them: in `down` choices are given, a bit each (some are random,
and cheaper), in `up` all are random. Seeds are paid once a connection, refills as they are used up.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from sphynx.bench.core_rates import connected
from sphynx.core import Prg, garbling, ot, random_bytes, silent
from sphynx.core.bits import plane_words
from sphynx.program.cost.cost import total_cost
from sphynx.program.folder import load_program
from sphynx.zoo.shipped import program_path

BLOCK_BYTES = 16
SOFTSPOKEN_OTS = 1 << 19
PARAMETERS = (4, 5, 6)
REPEATS = 3


@dataclass
class Measured:
    """CPU seconds of each party for one extension, least of all runs, and the bytes that were sent."""

    name: str
    ots: int
    random_bytes: float = 0  # for each OT, with random choices
    chosen_bytes: float = 0
    seconds: dict[str, float] = field(default_factory=dict)

    def ns(self, party: str) -> float:
        return 1e9 * self.seconds[party] / self.ots


class Clock:
    def __init__(self) -> None:
        self.seconds = {"sender": 0.0, "receiver": 0.0}

    @contextmanager
    def of(self, party: str) -> Iterator[None]:
        started = time.thread_time()
        yield
        self.seconds[party] += time.thread_time() - started


def measure_softspoken(k: int) -> Measured:
    receiver, sender = connected(k, checked=True)
    measured = Measured(f"SoftSpoken, k = {k}", SOFTSPOKEN_OTS)
    for _ in range(REPEATS):
        clock = Clock()
        with clock.of("receiver"):
            message, _, _ = receiver.correlated_random(SOFTSPOKEN_OTS, threads=1)
        with clock.of("sender"):
            sender.correlated(message, SOFTSPOKEN_OTS, random_choices=True, threads=1)
        _keep_least(measured, clock)
    blocks = [ot.message_blocks(k, SOFTSPOKEN_OTS, random_choices=kind, checked=True) for kind in (True, False)]
    _hold_equal(message.nbytes, BLOCK_BYTES * blocks[0])
    measured.random_bytes, measured.chosen_bytes = (BLOCK_BYTES * count / SOFTSPOKEN_OTS for count in blocks)
    return measured


def measure_silent(shape: silent.Shape, *, checked: bool) -> Measured:
    """Run it with choices that are given, the more expensive kind."""
    prg = Prg()
    delta, session = garbling.random_delta(prg), random_bytes(prg, BLOCK_BYTES)
    few_received, few_sent = connected(PARAMETERS[0], checked=True, delta=delta)
    seeding, _, t = few_received.correlated_random(shape.seeds)
    q = few_sent.correlated(seeding, shape.seeds, random_choices=True).zeros
    receiver = silent.SilentReceiver(session, t, checked=checked, shape=shape)
    sender = silent.SilentSender(session, few_sent, delta, q, prg, shape=shape)
    name = "silent, trees checked" if checked else "silent"
    measured = Measured(name, shape.usable)
    choices = np.zeros(plane_words(shape.usable), np.uint64)
    for repeat in range(REPEATS + 1):  # the first batch has its seeds already
        clock = Clock()
        with clock.of("sender"):
            trees = sender.refill(threads=1)
        with clock.of("receiver"):
            masked = receiver.refill(trees, threads=1)
        if checked:
            with clock.of("sender"):
                proof = sender.prove(masked, threads=1)
            receiver.accept(proof)
        with clock.of("receiver"):
            message, t = receiver.correlated(choices, shape.usable, threads=1)
        with clock.of("sender"):
            labels = sender.correlated(message, shape.usable, random_choices=False, threads=1)
        if repeat > 0:
            _keep_least(measured, clock)
    if not (t == labels.zeros).all():
        raise RuntimeError("silent OT: OTs whose choices are 0 differ")
    correction_bytes = BLOCK_BYTES * silent.message_blocks(shape.usable, random_choices=False)
    check_bytes = (silent.MASKED_BYTES + silent.PROOF_BYTES) * checked
    _hold_equal(message.nbytes, correction_bytes)
    _hold_equal(trees.nbytes, BLOCK_BYTES * shape.refill_blocks)
    measured.random_bytes = (trees.nbytes + check_bytes) / shape.usable
    measured.chosen_bytes = measured.random_bytes + message.nbytes / shape.usable
    return measured


def _keep_least(measured: Measured, clock: Clock) -> None:
    for party, seconds in clock.seconds.items():
        measured.seconds[party] = min(seconds, measured.seconds.get(party, seconds))


def _hold_equal(sent_bytes: int, formula_bytes: int) -> None:
    if sent_bytes != formula_bytes:
        raise RuntimeError(f"{sent_bytes} bytes were made, the formula says {formula_bytes}")


@dataclass(frozen=True)
class NetworkOts:
    """OTs of one image with gmw."""

    down: int
    up: int


def count_ots(name: str) -> NetworkOts:
    cost = total_cost(load_program(program_path(name)))
    up = cost.gmw_down_ots + cost.truncation_down_ots + cost.gate_down_ots
    every = cost.gmw_ots + cost.truncation_ots + cost.gate_ots + cost.square_ots
    return NetworkOts(every - up, up)


def print_network(name: str, few: Measured, many: Measured, many_up: Measured) -> None:
    ots = count_ots(name)
    today = few.random_bytes * ots.up + few.chosen_bytes * ots.down
    down = few.random_bytes * ots.up + many.chosen_bytes * ots.down
    both = many_up.random_bytes * ots.up + many.chosen_bytes * ots.down
    seeds = BLOCK_BYTES * ot.message_blocks(PARAMETERS[0], silent.SHAPE.seeds, random_choices=True, checked=True)
    print(f"\n{name}: {ots.down:,} OTs in `down`, {ots.up:,} in `up`, an image; MB, all choices in `down` given")
    print(f"  {few.name:24} {today / 1e6:6.2f}")
    print(f"  silent in `down`         {down / 1e6:6.2f}, once a connection {seeds / 1e6:.2f}")
    print(f"  silent in both           {both / 1e6:6.2f}, once a connection {2 * seeds / 1e6:.2f}")


def main(names: list[str]) -> None:
    rows = [measure_softspoken(k) for k in PARAMETERS]
    rows += [measure_silent(silent.SHAPE, checked=checked) for checked in (False, True)]
    print("extension                bytes, random / given choices   sender ns   receiver ns   ratio")
    for row in rows:
        ratios = (row.ns(party) / rows[0].ns(party) for party in ("sender", "receiver"))
        print(
            f"{row.name:24} {row.random_bytes:8.3f} / {row.chosen_bytes:5.3f} {row.ns('sender'):25.1f} "
            f"{row.ns('receiver'):13.1f}   " + " / ".join(f"{ratio:.2f}" for ratio in ratios)
        )
    for name in names:
        print_network(name, rows[0], rows[-2], rows[-1])


if __name__ == "__main__":
    main(sys.argv[1:])
