"""Several servers of one network: the order in which a client tries them, and going on when one is down."""

from __future__ import annotations

import json
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding

import sphynx
from sphynx.errors import ConnectionLostError, InputError, NobodyListensError, PeerGaveUpError
from sphynx.service import keys as key_folders
from sphynx.service.credentials import CERTIFICATE
from sphynx.service.replicas import AVOID_S, Place, Replicas, parse_servers, resolve_addresses
from sphynx.service.signing import new_certificate, new_key, now
from tests.service.processes import ServerProcess, used_twice
from tests.service.scene import Scene
from tests.service.test_verbs import run

SERVERS = [("a.example", 1), ("b.example", 2), ("c.example", 3)]


@cache
def certificate_of(name: str) -> bytes:
    key, subject = new_key(), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    return new_certificate(subject, subject, key.public_key(), now(), 1).sign(key, SHA256()).public_bytes(Encoding.PEM)


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def replicas(
    folder: Path,
    client: int = 0,
    *,
    clock: Clock | None = None,
    warned: list[str] | None = None,
    wait_s: float = 0.0,
) -> Replicas:
    keys = folder / f"client-{client}"
    keys.mkdir(exist_ok=True)
    (keys / CERTIFICATE).write_bytes(certificate_of(f"client-{client}"))
    said = [] if warned is None else warned
    return Replicas(
        SERVERS,
        keys=keys,
        wait_s=wait_s,
        warn=said.append,
        resolve=lambda host, _port: [f"{host}-1", f"{host}-2"] if host == "b.example" else [host],
        clock=clock or Clock(),
    )


def test_servers_as_they_may_be_written() -> None:
    assert (
        parse_servers("a:1,b:2")
        == parse_servers(["a:1", "b:2"])
        == parse_servers("a:1, b:2,a:1")
        == (("a", 1), ("b", 2))
    )
    assert parse_servers("[::1]:7443") == (("::1", 7443),)
    for wrong in ("a:1,", "a", ["a:1", "b"]):
        with pytest.raises(InputError, match="HOST:PORT"):
            parse_servers(wrong)
    for host in ("a..b", ".example", f"{64 * 'a'}.example"):
        with pytest.raises(InputError, match="not a valid host name"):
            parse_servers(f"{host}:7443")
    with pytest.raises(InputError, match="no server"):
        parse_servers([])


def test_every_address_of_a_name_counts_as_a_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sphynx.service.replicas.resolve_addresses", lambda _host, _port: ["192.0.2.1", "192.0.2.2"])
    assert sphynx.Client("a.example:1", keys=tmp_path).server_count == 2
    assert sphynx.Client("a.example:1,b.example:1", keys=tmp_path).server_count == 4


def test_a_clients_order_stays_and_clients_spread(tmp_path: Path) -> None:
    orders = [replicas(tmp_path, number).places() for number in range(300)]
    assert orders[7] == replicas(tmp_path, 7).places()
    assert all(Counter(map(str, order)) == Counter(map(str, orders[0])) for order in orders)
    first = Counter(order[0].host for order in orders)
    assert all(60 < first[host] < 140 for host, _ in SERVERS)  # 100 each, five deviations of 8
    of_b = Counter(next(place.address for place in order if place.host == "b.example") for order in orders)
    assert len(of_b) == 2


def test_a_server_that_failed_comes_last_for_a_while(tmp_path: Path) -> None:
    clock, warned = Clock(), list[str]()
    tried = replicas(tmp_path, clock=clock, warned=warned)
    order = tried.places()

    def refuse_first(place: Place) -> str:
        if place == order[0]:
            raise NobodyListensError("it refuses", where=str(place), remedy="Start it.")
        return "connection"

    place, found = tried.connect(refuse_first)
    assert (place, found) == (order[1], "connection")
    assert tried.places() == [*order[1:], order[0]]
    if order[0].host != order[1].host:
        assert len(warned) == 1 and order[0].host in warned[0] and "it refuses" in warned[0]
    clock.now_s += AVOID_S
    assert tried.places() == order


def test_if_all_fail_the_first_ones_error_is_raised(tmp_path: Path) -> None:
    tried = replicas(tmp_path)
    order = tried.places()

    def refuse(place: Place) -> str:
        kind = PeerGaveUpError if place == order[0] else ConnectionLostError
        raise kind(f"{place} fails", where="", remedy="None.")

    with pytest.raises(PeerGaveUpError, match=order[0].host):
        tried.connect(refuse)


def test_whoever_waits_for_a_server_is_told_once(tmp_path: Path) -> None:
    clock, warned = Clock(), list[str]()
    tried = replicas(tmp_path, clock=clock, warned=warned, wait_s=10)

    def refuse(place: Place) -> str:
        clock.now_s += 1
        raise NobodyListensError("it refuses", where=str(place), remedy="Start it.")

    with pytest.raises(NobodyListensError):
        tried.connect(refuse)
    assert len(warned) == 1 and "waiting up to 10 s for the server to start" in warned[0]


def test_names_without_an_address_are_left_to_the_connection() -> None:
    assert resolve_addresses("127.0.0.1", 7443) == ["127.0.0.1"]
    assert resolve_addresses("no-such-name.invalid", 7443) == ["no-such-name.invalid"]


@pytest.fixture
def pair(scene: Scene, tmp_path: Path) -> Iterator[list[ServerProcess]]:
    """Two replicas with a certificate and a state each; the name in both certificates is 127.0.0.1."""
    authority = tmp_path / "authority"
    key_folders.init(authority)
    scene.authority = authority
    key_folders.issue(authority, "alice")
    found = [
        ServerProcess(
            scene.compiled,
            key_folders.issue(authority, f"replica-{at}", hosts=["127.0.0.1"]),
            tmp_path / f"replica-{at}",
            scene.server.audit,
            warm=scene.server.warm,
        ).start()
        for at in range(2)
    ]
    yield found
    for server in found:
        server.stop(signal.SIGKILL)


def test_a_client_goes_on_with_another_and_comes_back_to_its_bundles(
    scene: Scene, pair: list[ServerProcess], tmp_path: Path
) -> None:
    warned: list[str] = []
    addresses = [f"127.0.0.1:{server.port}" for server in pair]
    client = sphynx.Client(
        addresses, keys=scene.authority / "alice", state=tmp_path / "client", wait_s=0.0, warn=warned.append
    )
    with client:
        client.prepare(2, backend="gmw")
        first = pair[addresses.index(client.server)]
        assert first.stop(signal.SIGKILL) == -signal.SIGKILL
        found = client.infer(scene.pixels)  # the client sees that the server has left before it burns a bundle
        assert np.array_equal(found.integer_logits, scene.logits)
        assert client.server != f"127.0.0.1:{first.port}" and client.ready == 0
        assert len(warned) == 1 and str(first.port) in warned[0]
    first.start()
    with sphynx.Client(addresses, keys=scene.authority / "alice", state=tmp_path / "client") as client:
        assert client.server == f"127.0.0.1:{first.port}" and client.ready == 2
        assert np.array_equal(client.infer(scene.pixels).integer_logits, scene.logits)
    assert not used_twice(scene.server.audit)


def test_an_inference_that_was_running_is_lost_and_the_next_one_goes_on(
    scene: Scene, pair: list[ServerProcess], tmp_path: Path
) -> None:
    for server in pair:  # both die in their first inference, whichever is asked
        server.stop()
        server.fault = "online:SIGKILL"
        server.start()
    addresses = ",".join(f"127.0.0.1:{server.port}" for server in pair)
    client = sphynx.Client(addresses, keys=scene.authority / "alice", state=tmp_path / "client", warn=lambda _why: None)
    client.prepare(1, backend="gmw")
    asked = client.server
    with pytest.raises(ConnectionLostError):
        client.infer(scene.pixels)
    dead = next(server for server in pair if asked.endswith(f":{server.port}"))
    assert dead.ended() == -signal.SIGKILL
    other = next(server for server in pair if server is not dead)
    other.stop()
    other.fault = "none"
    other.start()
    assert np.array_equal(client.infer(scene.pixels).integer_logits, scene.logits)
    client.close()
    assert scene.states(dead.state) == ["burned"]
    assert not used_twice(scene.server.audit)


def test_the_verb_asks_again_elsewhere(scene: Scene, pair: list[ServerProcess], tmp_path: Path) -> None:
    pair[0].stop()
    pair[0].fault = "online:SIGKILL"
    pair[0].start()
    servers = ("--server", f"127.0.0.1:{pair[0].port}", "--server", f"127.0.0.1:{pair[1].port}")
    keys = ("--keys", scene.authority / "alice", "--state", tmp_path / "client")
    said = json.loads(run("infer", scene.picture, *servers, *keys, "--backend", "gmw", "--json"))
    assert said["predictions"][0]["labels"] == scene.expected
    assert not used_twice(scene.server.audit)


def test_nobody_listens_anywhere(scene: Scene, tmp_path: Path, authority: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    servers = f"127.0.0.1:{port},127.0.0.1:1"
    client = sphynx.Client(servers, keys=authority / "alice", state=tmp_path / "client", wait_s=0.2)
    with pytest.raises(NobodyListensError, match="no connection"):
        client.infer(scene.pixels)
    assert not (tmp_path / "client").exists()
