"""Measure how many cores two parties keep busy offline: a small network is prepared between two processes, as bundles
are, and CPU time is divided by the wall clock's.

They cannot keep all of them busy all the time: each waits for the other's first message of a phase, some messages are
too short for several threads, and calls are made on one. The best of several: other work only takes cores away.
"""

from __future__ import annotations

from functools import partial
from multiprocessing.connection import Connection

import numpy as np

from sphynx.bench.private_parties import (
    OpenChannel,
    Phase,
    accept_client,
    connect_to_server,
    in_step,
    run_pair,
    timed,
)
from sphynx.program.convolve import Array
from sphynx.program.ir import INPUT, Linear, Program, Relu, Term
from sphynx.protocol.bundle import ID_BYTES
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference import Party
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.space.tally import Shape
from sphynx.threads import available_cores

REPEATS = 8
RING_BITS, KERNEL, PADDING, TRUNCATED = 32, 5, 2, 8
IMAGE, INSIDE, OUTPUTS = Shape(3, 16, 16), Shape(40, 16, 16), 100
RANGE_BITS = 20  # of sums of weights of 0 and 1; no image is asked about


def small_network() -> tuple[Program, dict[str, Array]]:
    """Two layers of ReLUs between three linear maps."""
    steps = (
        _map("a.input", Term(INPUT, KERNEL, KERNEL, pad_top=PADDING, pad_left=PADDING), INSIDE),
        Relu("a", "a.input", TRUNCATED),
        _map("b.input", Term("a", KERNEL, KERNEL, pad_top=PADDING, pad_left=PADDING), INSIDE),
        Relu("b", "b.input", TRUNCATED),
        _map("logits", Term("b", INSIDE.height, INSIDE.width), Shape(OUTPUTS, 1, 1)),
    )
    program = Program(IMAGE, steps, RING_BITS, 2)
    drawn, weights = np.random.default_rng(0), dict[str, Array]()
    for step in program.linears:
        (term,) = step.terms
        shape = step.shape.channels, program.shapes[term.source].channels, term.kernel_height, term.kernel_width
        weights[step.weight_name(0)] = drawn.integers(0, 2, shape)
        weights[step.bias_name] = np.zeros(step.shape, np.int64)
    return program, weights


def _map(name: str, term: Term, shape: Shape) -> Linear:
    return Linear(name, (term,), shape, range_bits=RANGE_BITS)


def busy_cores(open_channel: OpenChannel) -> float:
    served, asked = run_pair(
        partial(_serve, open_channel=open_channel),
        partial(_ask, open_channel=open_channel),
        where="measuring this machine",
        remedy="Run sphynx doctor.",
    )
    busy = (
        (ours.cpu_s + theirs.cpu_s) / (max(ours.end_s, theirs.end_s) - min(ours.start_s, theirs.start_s))
        for ours, theirs in zip(served[1:], asked[1:], strict=True)  # not the first, which has the set-up
    )
    return min(max(busy), float(available_cores()))


def _serve(told: Connection, open_channel: OpenChannel) -> list[Phase]:
    model = ServerModel(*small_network())
    channel = accept_client(told, open_channel, None)
    return _prepare(channel, InferenceServer(model, channel))


def _ask(told: Connection, open_channel: OpenChannel) -> list[Phase]:
    channel = connect_to_server(told, open_channel, None)
    return _prepare(channel, InferenceClient(small_network()[0], channel))


def _prepare(channel: Channel, party: Party) -> list[Phase]:
    phases = []
    for number in range(REPEATS + 1):
        in_step(channel)
        phases.append(timed(channel, partial(party.prepare, number.to_bytes(ID_BYTES, "little"), "gmw"))[0])
    channel.close()
    return phases
