"""Measure what only a whole inference shows, by one of a small network between two processes: how many cores the
parties keep busy offline, and how long it takes online.

They cannot keep all cores busy all the time: each waits for the other's first message of a phase, some messages are too
short for several threads, and calls are made on one. Of that the best of several is taken: other work only takes cores
away. Online the median is: estimates have to be right about most inferences.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
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
from sphynx.program.backends import Backend
from sphynx.program.convolve import Array
from sphynx.program.cost.link import Link
from sphynx.program.ir import INPUT, Linear, Program, Relu, Step, Term
from sphynx.protocol.bundle import ID_BYTES, Bundle
from sphynx.protocol.channel import Channel
from sphynx.protocol.inference import Party
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.space.tally import Shape
from sphynx.threads import available_cores

REPEATS = 8
LAYERS = 4  # of ReLUs
NARROW, WIDE = 4, 40  # channels
BACKEND: Backend = "gmw"
RING_BITS, KERNEL, PADDING, TRUNCATED = 32, 5, 2, 8
EXTENT, OUTPUTS = (16, 16), 100
IMAGE = Shape(3, *EXTENT)
RANGE_BITS = 20  # of sums of weights of 0 and 1, for a black picture


def small_network(channels: int = WIDE) -> tuple[Program, dict[str, Array]]:
    """Layers of ReLUs, so many channels wide, each behind a linear map, and a last map."""
    steps: list[Step] = []
    last, inside = INPUT, Shape(channels, *EXTENT)
    for name in map(str, range(LAYERS)):
        before = f"{name}.input"
        steps.append(_map(before, Term(last, KERNEL, KERNEL, pad_top=PADDING, pad_left=PADDING), inside))
        steps.append(Relu(name, before, TRUNCATED))
        last = name
    steps.append(_map("logits", Term(last, *EXTENT), Shape(OUTPUTS, 1, 1)))
    program = Program(IMAGE, tuple(steps), RING_BITS, 2)
    drawn, weights = np.random.default_rng(0), dict[str, Array]()
    for step in program.linears:
        (term,) = step.terms
        shape = step.shape.channels, program.shapes[term.source].channels, term.kernel_height, term.kernel_width
        weights[step.weight_name(0)] = drawn.integers(0, 2, shape, np.int32)
        weights[step.bias_name] = np.zeros(step.shape, np.int64)
    return program, weights


def _map(name: str, term: Term, shape: Shape) -> Linear:
    return Linear(name, (term,), shape, range_bits=RANGE_BITS)


@dataclass(frozen=True)
class SmallRun:
    busy_cores: float
    online_s: float


@dataclass(frozen=True)
class _Phases:
    """One party's measurements, bundle after bundle."""

    offline: list[Phase]
    online: list[Phase]


def run_small(open_channel: OpenChannel, channels: int = WIDE, link: Link | None = None) -> SmallRun:
    served, asked = run_pair(
        partial(_serve, open_channel=open_channel, channels=channels, link=link),
        partial(_ask, open_channel=open_channel, channels=channels, link=link),
        where="measuring this machine",
        remedy="Run sphynx doctor.",
    )
    busy = (
        (ours.cpu_s + theirs.cpu_s) / (max(ours.end_s, theirs.end_s) - min(ours.start_s, theirs.start_s))
        for ours, theirs in zip(served.offline[1:], asked.offline[1:], strict=True)  # the first has the set-up
    )
    online_s = statistics.median(phase.seconds for phase in asked.online[1:])
    return SmallRun(min(max(busy), float(available_cores())), online_s)


def _serve(told: Connection, open_channel: OpenChannel, channels: int, link: Link | None) -> _Phases:
    model = ServerModel(*small_network(channels))
    channel = accept_client(told, open_channel, link)
    server = InferenceServer(model, channel)
    return _measure(channel, server, server.infer)


def _ask(told: Connection, open_channel: OpenChannel, channels: int, link: Link | None) -> _Phases:
    channel = connect_to_server(told, open_channel, link)
    client = InferenceClient(small_network(channels)[0], channel)
    return _measure(channel, client, partial(client.infer, pixels=np.zeros((1, *IMAGE), np.uint8)))


def _measure(channel: Channel, party: Party, infer: Callable[[Bundle], object]) -> _Phases:
    offline, online = [], []
    for number in range(REPEATS + 1):
        in_step(channel)
        phase, bundle = timed(channel, partial(party.prepare, number.to_bytes(ID_BYTES, "little"), BACKEND))
        offline.append(phase)
        in_step(channel)
        online.append(timed(channel, partial(infer, bundle))[0])
    channel.close()
    return _Phases(offline, online)
