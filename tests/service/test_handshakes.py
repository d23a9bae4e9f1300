"""Strangers who hold places for handshakes: which of them gives way, and that clients get in."""

from __future__ import annotations

import contextlib
import io
import select
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sphynx.errors import PeerGaveUpError
from sphynx.protocol.channel import Channel
from sphynx.service import session
from sphynx.service.credentials import client_context
from sphynx.service.handshakes import PATIENCE_S, SILENCE_S, Handshakes
from sphynx.service.session import SERVICE_VERSION, Hello, Welcome
from sphynx.service.settings import Limits
from sphynx.service.tls import TlsStream
from tests.service.test_limits import PIXELS, serving

BURST = 70


class Strangers:
    """Strangers who enter at a time that the test says."""

    def __init__(self, total: int) -> None:
        self.now_s = 0.0
        self.places = Handshakes(total, lambda: self.now_s)
        self.pairs: list[tuple[socket.socket, socket.socket]] = []

    def come(self, *addresses: str) -> None:
        for address in addresses:
            self.pairs.append(socket.socketpair())
            self.places.enter(self.pairs[-1][0], address)

    def sent_away(self) -> list[int]:
        return [number for number, (_, theirs) in enumerate(self.pairs) if select.select([theirs], [], [], 0)[0]]


@pytest.fixture
def strangers() -> Iterator[Strangers]:
    made = Strangers(total=4)
    yield made
    for pair in made.pairs:
        for end in pair:
            end.close()


def test_one_address_may_have_all_places_while_they_are_free(strangers: Strangers) -> None:
    for _ in range(4):
        assert strangers.places.make_room()
        strangers.come("10.0.0.1")
    assert strangers.sent_away() == []


def test_who_holds_most_gives_way_and_the_longest_silence_first(strangers: Strangers) -> None:
    """An IPv6 network is one holder, and an IPv4 address the same in both notations."""
    strangers.come("10.0.0.1", "2001:db8::1", "10.0.0.2", "2001:db8::ffff:2")
    strangers.now_s = SILENCE_S
    assert strangers.places.make_room() and strangers.sent_away() == [1]
    strangers.come("::ffff:10.0.0.2")
    strangers.now_s += SILENCE_S
    assert strangers.places.make_room() and strangers.sent_away() == [1, 2]
    strangers.places.leave(strangers.pairs[0][0])
    assert strangers.places.make_room() and strangers.sent_away() == [1, 2]


def test_who_has_just_come_is_given_time_for_its_hello(strangers: Strangers) -> None:
    """A client is for a moment the only silent one, when strangers send their hellos at once."""
    strangers.come(*["10.0.0.1"] * 4)
    for ours, _ in strangers.pairs[:3]:
        strangers.places.heard_hello(ours)
    assert not strangers.places.make_room()
    strangers.now_s = SILENCE_S
    assert strangers.places.make_room() and strangers.sent_away() == [3]


def test_after_its_hello_a_peer_has_its_time_and_newcomers_wait(strangers: Strangers) -> None:
    strangers.come(*["10.0.0.1"] * 4)
    for ours, _ in strangers.pairs:
        strangers.places.heard_hello(ours)
    strangers.now_s = 0.99 * PATIENCE_S
    assert not strangers.places.make_room()
    strangers.now_s = PATIENCE_S
    assert strangers.places.make_room() and strangers.sent_away() == [0]


def test_what_was_not_read_yet_may_be_a_hello(strangers: Strangers) -> None:
    strangers.come(*["10.0.0.1"] * 4)
    strangers.pairs[0][1].send(b"\x16")
    strangers.now_s = SILENCE_S
    assert strangers.places.make_room() and strangers.sent_away() == [1]


def test_behind_a_proxy_the_real_address_counts(strangers: Strangers) -> None:
    strangers.come(*["10.0.0.1"] * 4)
    for (ours, _), address in zip(strangers.pairs, ("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.2"), strict=True):
        strangers.places.count_for(ours, address)
    strangers.now_s = SILENCE_S
    assert strangers.places.make_room() and strangers.sent_away() == [1]
    strangers.places.count_for(strangers.pairs[1][0], "192.0.2.9")  # gone already: nothing to count


@contextlib.contextmanager
def silent(port: int, addresses: list[str]) -> Iterator[None]:
    with contextlib.ExitStack() as held:
        for address in addresses:
            held.enter_context(socket.create_connection(("127.0.0.1", port), source_address=(address, 0)))
        yield


def test_silent_strangers_do_not_lock_out_their_address(tmp_path: Path, authority: Path) -> None:
    """Behind a load balancer they have the clients' own."""
    limits = Limits(handshake_s=60)
    with (
        serving(tmp_path, authority, limits, io.StringIO()) as (client, server),
        silent(server.port, ["127.0.0.1"] * 40),
        client,
    ):
        client.infer(PIXELS)


def test_strangers_who_hold_all_places_give_way(tmp_path: Path, authority: Path) -> None:
    limits = Limits(handshakes=6, handshake_s=60)
    with serving(tmp_path, authority, limits, io.StringIO()) as (client, server):
        for addresses in (["127.0.0.1"] * 9, ["127.0.0.2", "127.0.0.3", "127.0.0.4"] * 2):
            with silent(server.port, addresses), client:
                client.infer(PIXELS)


def test_a_burst_of_clients_gets_answers(tmp_path: Path, authority: Path) -> None:
    """Also those that are too many for one certificate: the reason, and not a connection that just ends."""
    context = client_context(authority / "alice")

    def ask(port: int) -> str:
        sock = socket.create_connection(("127.0.0.1", port), timeout=30)
        channel = Channel(TlsStream.connect(sock, context, "127.0.0.1", handshake_s=30, timeout_s=30))
        try:
            session.send(channel, Hello(SERVICE_VERSION))
            session.expect(channel, Welcome)
        except PeerGaveUpError as refusal:
            return refusal.what
        finally:
            channel.close(wait_s=0)
        return "welcome"

    with (
        serving(tmp_path, authority, Limits(), io.StringIO()) as (_, server),
        ThreadPoolExecutor(BURST) as pool,
    ):
        answers = list(pool.map(ask, [server.port] * BURST))
    assert "welcome" in answers
    assert all(answer == "welcome" or "too many connections" in answer for answer in answers)
