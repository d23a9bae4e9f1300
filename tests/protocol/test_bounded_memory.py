"""Peaks of both parties' memory while they prepare, each a process of its own, beside what they keep."""

from __future__ import annotations

import os
from functools import partial
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np
from tests.program.programs import random_weights
from tests.protocol.relu_runs import layer_of

from sphynx.bench.private_parties import accept_client, connect_to_server, plain_channel, run_pair
from sphynx.core import Prg
from sphynx.program.ir import INPUT, Linear, Program, Relu, Term
from sphynx.protocol.gmw_cuts import CUT
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.linear_plan import plan_group
from sphynx.protocol.ots import add_up_client, add_up_server, set_up_client, set_up_server
from sphynx.protocol.relu import relu_client, relu_server
from sphynx.space.tally import Shape
from sphynx.system import peak_memory_bytes

FIXED_BYTES = 120 << 20  # what a party may hold beside what it keeps, however large that is
RELUS = 12 * CUT
GROUP = 8
REMEDY = "none"


class Grown(NamedTuple):
    """How much a process has grown beyond its peak of before, and the bytes that it kept or gave away."""

    peak_bytes: int
    kept_bytes: int


def test_a_large_layer_of_gmw_takes_the_memory_of_its_material() -> None:
    """The OTs of the whole layer at once took 300 MB for 15."""
    for grown in run_pair(_serve_layer, _ask_layer, where="layer", remedy=REMEDY):
        assert grown.peak_bytes <= grown.kept_bytes + FIXED_BYTES


def test_a_group_takes_the_memory_of_two_bundles_where_each_is_written_as_it_comes() -> None:
    """Garbled circuits, where a client's bundle is large."""
    ids = [os.urandom(16) for _ in range(GROUP)]
    pair = run_pair(partial(_serve_group, ids=ids), partial(_ask_group, ids=ids), where="group", remedy=REMEDY)
    for grown in pair:
        assert grown.peak_bytes <= 2 * grown.kept_bytes // GROUP + FIXED_BYTES
    assert grown.kept_bytes > 3 * FIXED_BYTES  # the client's: all of them would not pass


def _serve_layer(told: Connection) -> Grown:
    channel, prg = accept_client(told, plain_channel, None), Prg()
    ots = add_up_server(channel, set_up_server(channel, prg, b"memory"))
    before = peak_memory_bytes()
    (material,) = relu_server("gmw").offline(channel, ots, [layer_of(28, 32, 8, RELUS)])
    return Grown(peak_memory_bytes() - before, sum(array.nbytes for array in material.values()))


def _ask_layer(told: Connection) -> Grown:
    channel, prg, x = connect_to_server(told, plain_channel, None), Prg(), np.zeros(RELUS, np.uint64)
    ots = add_up_client(channel, set_up_client(channel, prg, b"memory"))
    before = peak_memory_bytes()
    (material,) = relu_client("gmw").offline(channel, ots, [layer_of(28, 32, 8, RELUS)], [x], [x])
    return Grown(peak_memory_bytes() - before, sum(array.nbytes for array in material.values()))


def _serve_group(told: Connection, ids: list[bytes]) -> Grown:
    program = _program()
    model = ServerModel(program, random_weights(program))
    model.maps_for(GROUP)
    channel = accept_client(told, plain_channel, None)
    before = peak_memory_bytes()
    kept_bytes = sum(bundle.bytes for bundle in InferenceServer(model, channel).prepare_each(ids, "gc"))
    return Grown(peak_memory_bytes() - before, kept_bytes)


def _ask_group(told: Connection, ids: list[bytes]) -> Grown:
    program = _program()
    assert plan_group(program).images >= GROUP
    channel = connect_to_server(told, plain_channel, None)
    before = peak_memory_bytes()
    kept_bytes = sum(bundle.bytes for bundle in InferenceClient(program, channel).prepare_each(ids, "gc"))
    return Grown(peak_memory_bytes() - before, kept_bytes)


def _program() -> Program:
    """A map of 16,384 ReLUs: 50 MB of a client's bundle."""
    steps = (
        Linear("first", (Term(INPUT, 3, 3, pad_top=1, pad_left=1),), Shape(16, 32, 32), 0, 26),
        Relu("relu", "first", 12),
        Linear("logits", (Term("relu", 32, 32),), Shape(4, 1, 1), 0, 30),
    )
    return Program(Shape(3, 32, 32), steps, ring_bits=30, weight_bits=8, name="wide")
