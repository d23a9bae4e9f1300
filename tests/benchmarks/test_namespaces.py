"""Two parties in network namespaces of their own: real sockets between them, delayed by the kernel where it can."""

import math
import os
import socket
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from benchmarks.namespaces import ADDRESSES, netem_words, two_hosts, why_impossible

from sphynx.bench.private import measure_private
from sphynx.bench.private_models import compiled_model
from sphynx.bench.private_parties import Place, run_pair
from sphynx.program.cost.link import LINKS, Link
from sphynx.protocol.bundle import Role
from tests.service.tiny import save_tiny

NO_NAMESPACES, NO_NETEM = why_impossible(netem=False), why_impossible(netem=True)


def test_a_link_in_the_words_of_tc() -> None:
    assert netem_words(LINKS["wan"]) == "netem delay 20000us rate 100000000bit limit 1000"
    assert netem_words(Link(0.1, 1e9)) == "netem delay 50000us rate 1000000000bit limit 16667"
    assert netem_words(Link(0.01, math.inf)) == "netem delay 5000us"


def look_around(told: Connection, hosts: Place, role: Role) -> tuple[list[str], list[int]]:
    hosts(role)
    if role == "server":
        told.send(("done", 0))
    else:
        told.recv()
    return [name for _, name in socket.if_nameindex()], sorted(os.sched_getaffinity(0))


@pytest.mark.slow
@pytest.mark.skipif(NO_NAMESPACES is not None, reason=str(NO_NAMESPACES))
def test_parties_have_interfaces_and_cores_of_their_own() -> None:
    with two_hosts(None) as (_, hosts):
        looks = (partial(look_around, hosts=hosts, role=role) for role in ADDRESSES)
        (ours, our_cores), (theirs, their_cores) = run_pair(*looks, where="test", remedy="")
    assert (set(ours), set(theirs)) == ({"lo", "server"}, {"lo", "client"})
    assert len(os.sched_getaffinity(0)) < 2 or not set(our_cores) & set(their_cores)
    assert "server" not in [name for _, name in socket.if_nameindex()]


@pytest.mark.slow
@pytest.mark.skipif(NO_NAMESPACES is not None, reason=str(NO_NAMESPACES))
@pytest.mark.parametrize(
    "link", [None, pytest.param(LINKS["wan"], marks=pytest.mark.skipif(NO_NETEM is not None, reason=str(NO_NETEM)))]
)
def test_private_answers_between_two_namespaces(link: Link | None, tmp_path: Path) -> None:
    save_tiny(tmp_path / "tiny")
    model = compiled_model(str(tmp_path / "tiny"), print)
    (row,) = measure_private([model], ["gmw"], {"link": link}, repeats=1, batch=1, network=two_hosts)
    assert row.equal_to_oracle and row.online_bytes > 0
    if link is not None:  # an answer crosses the link at least twice
        assert row.online_s >= link.round_trip_s
