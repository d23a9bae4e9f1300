"""Two parties in network namespaces of their own: real sockets, and packets that netem or a process delays."""

import math
import os
import socket
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from benchmarks.forwarder import Lane
from benchmarks.link_probe import measured_link
from benchmarks.namespaces import ADDRESSES, Shaper, netem_words, queue_packets, shaper_here, two_hosts, why_impossible
from hypothesis import given
from hypothesis import strategies as st

from sphynx.bench.private import measure_private
from sphynx.bench.private_models import compiled_model
from sphynx.bench.private_parties import Place, run_pair
from sphynx.program.cost.link import LINKS, Link
from sphynx.protocol.bundle import Role
from tests.service.tiny import save_tiny

HERE = shaper_here()
NO_NAMESPACES, NO_SHAPER = why_impossible(HERE, shaped=False), why_impossible(HERE, shaped=True)
SLOW_LINK = Link(0.08, 20e6, "80ms,20Mbit")  # far beyond what a busy machine adds
FACTOR = 4  # what a busy machine may make of a link


def test_a_link_in_the_words_of_tc() -> None:
    assert netem_words(LINKS["wan"]) == "netem delay 20000us rate 100000000bit limit 1000"
    assert netem_words(Link(0.1, 1e9)) == "netem delay 50000us rate 1000000000bit limit 16667"
    assert netem_words(Link(0.01, math.inf)) == "netem delay 5000us"


def test_a_queue_has_room_for_two_round_trips() -> None:
    assert queue_packets(LINKS["lan"]) == 1000
    assert queue_packets(Link(0.1, 1e9)) * 1500 >= 2 * 0.1 * 1e9 / 8


@given(st.lists(st.tuples(st.floats(0, 0.01), st.binary(min_size=1, max_size=3000)), min_size=1, max_size=60))
def test_packets_go_one_after_another_at_the_rate_and_arrive_a_delay_later(coming: list[tuple[float, bytes]]) -> None:
    lane = Lane(source=0, sink=0, delay_s=0.25, bits_per_s=1e6, queue_bytes=6000)
    now_s = sent_bytes = 0.0
    for pause_s, packet in coming:
        now_s += pause_s
        waiting_bytes = max(0.0, lane.free_at_s - now_s) * 1e6 / 8
        if not lane.admit(packet, now_s):
            assert waiting_bytes > 6000
            continue
        assert waiting_bytes <= 6000 + 1e-6
        sent_bytes += len(packet)
        arrives_s, arrived = lane.on_the_way[-1]
        assert arrived == packet and arrives_s >= now_s + 8 * len(packet) / 1e6 + 0.25 - 1e-9
    arrivals = [arrives_s for arrives_s, _ in lane.on_the_way]
    assert arrivals == sorted(arrivals)
    assert arrivals[-1] - 0.25 >= 8 * sent_bytes / 1e6 - 1e-9
    assert lane.due_s == arrivals[0]


def test_a_lane_without_a_limit_only_delays() -> None:
    lane = Lane(source=0, sink=0, delay_s=0.25, bits_per_s=math.inf, queue_bytes=0)
    assert lane.due_s == math.inf
    assert all(lane.admit(bytes(1500), 1.0) for _ in range(3))
    assert [arrives_s for arrives_s, _ in lane.on_the_way] == [1.25] * 3


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
    with two_hosts(None, HERE) as (_, hosts):
        looks = (partial(look_around, hosts=hosts, role=role) for role in ADDRESSES)
        (ours, our_cores), (theirs, their_cores) = run_pair(*looks, where="test", remedy="")
    assert (set(ours), set(theirs)) == ({"lo", "server"}, {"lo", "client"})
    assert len(os.sched_getaffinity(0)) < 2 or not set(our_cores) & set(their_cores)
    assert "server" not in [name for _, name in socket.if_nameindex()]


@pytest.mark.slow
@pytest.mark.skipif(NO_SHAPER is not None, reason=str(NO_SHAPER))
def test_a_link_is_about_what_was_asked_for() -> None:
    with two_hosts(SLOW_LINK, HERE) as (_, hosts):
        found = measured_link(hosts, SLOW_LINK)
    assert SLOW_LINK.round_trip_s <= found.round_trip_s <= FACTOR * SLOW_LINK.round_trip_s
    assert SLOW_LINK.bits_per_s / FACTOR <= found.bits_per_s <= FACTOR * SLOW_LINK.bits_per_s


@pytest.mark.slow
@pytest.mark.parametrize(
    ("link", "by"),
    [
        pytest.param(None, HERE, marks=pytest.mark.skipif(NO_NAMESPACES is not None, reason=str(NO_NAMESPACES))),
        pytest.param(SLOW_LINK, HERE, marks=pytest.mark.skipif(NO_SHAPER is not None, reason=str(NO_SHAPER))),
    ],
)
def test_private_answers_between_two_namespaces(link: Link | None, by: Shaper | None, tmp_path: Path) -> None:
    save_tiny(tmp_path / "tiny")
    model = compiled_model(str(tmp_path / "tiny"), print)
    hosts = partial(two_hosts, by=by)
    (row,) = measure_private([model], ["gmw"], {"link": link}, repeats=1, batch=1, network=hosts)
    assert row.equal_to_oracle and row.online_bytes > 0
    if link is not None:  # an answer crosses the link at least twice
        assert row.online_s >= link.round_trip_s
