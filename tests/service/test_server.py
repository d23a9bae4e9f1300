"""A server process among good, wrong, slow and hostile peers: those are refused and logged, good clients are served."""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import signal
import socket
import struct
import subprocess
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sphynx.errors import BundleRefusedError, HandshakeError, PeerGaveUpError
from sphynx.program.interpret import interpret
from sphynx.protocol.channel import WIRE_VERSION, Channel
from sphynx.service import keys, session
from sphynx.service.credentials import client_context
from sphynx.service.session import SERVICE_VERSION, Hello, Infer, Welcome
from sphynx.service.settings import Limits
from sphynx.service.tls import TlsStream
from sphynx.version import __version__
from tests.service.processes import ROOT, command, environment, used_twice
from tests.service.scene import Scene
from tests.warm_process import Warm

STRANGER = "127.0.0.2"  # also this machine, but another address


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, authority: Path, warm: Warm) -> Iterator[Scene]:
    """One server with short timeouts for all tests of this file."""
    scene = Scene(tmp_path_factory.mktemp("served"), authority, warm)
    scene.server.flags = ("--handshake", "3", "--timeout", "5", "--idle", "30", "--pool", "4", "--hourly", "40")
    scene.server.start()
    yield scene
    assert not used_twice(scene.server.audit)
    assert scene.server.stop() == 0


def tls(scene: Scene, name: str | Path = "alice") -> TlsStream:
    sock = socket.create_connection(("127.0.0.1", scene.server.port))
    return TlsStream.connect(sock, client_context(scene.authority / name), "127.0.0.1", handshake_s=20, timeout_s=20)


def hello(scene: Scene, name: str = "alice") -> tuple[Channel, Welcome]:
    channel = Channel(tls(scene, name))
    session.send(channel, Hello(SERVICE_VERSION))
    welcome = session.expect(channel, Welcome)
    channel.receive(welcome.program_bytes)
    return channel, welcome


def check_a_good_client(scene: Scene, name: str = "alice") -> None:
    with scene.client(name) as client:
        prediction = client.infer(scene.pixels)
    assert np.array_equal(prediction.integer_logits, scene.logits)


def test_the_private_result_is_the_oracle_s(served: Scene) -> None:
    with served.client() as client:
        assert client.program == served.program
        assert client.prepare(2, backend="gmw") == "gmw" and client.prepare(1, backend="gc") == "gc"
        client.warm()
        for _ in range(3):
            prediction = client.infer(served.pixels)
            assert np.array_equal(prediction.integer_logits, served.logits)
            assert prediction.online_bytes > 0 and prediction.online_rounds > 0 and prediction.offline_bytes > 0
        assert not client.ready
        images = np.random.default_rng(1).integers(0, 256, (3, 1, 4, 4), np.uint8)
        assert len(client.infer_batch(images)) == 3


def test_clients_at_the_same_time_get_their_own_results(served: Scene) -> None:
    def ask(name: str) -> bool:
        rng = np.random.default_rng(len(name))
        with served.client(name) as client:
            client.prepare(2, backend="gmw" if name == "alice" else "gc")
            for _ in range(3):
                pixels = rng.integers(0, 256, (1, 4, 4), np.uint8)
                expected = interpret(served.program, served.weights, pixels[None])[0]
                if not np.array_equal(client.infer(pixels).integer_logits, expected):
                    return False
        return True

    with ThreadPoolExecutor(2) as pool:
        assert all(pool.map(ask, ("alice", "bob")))


def test_certificates_that_do_not_count(served: Scene, tmp_path: Path) -> None:
    keys.init(tmp_path / "other")
    stranger = keys.issue(tmp_path / "other", "alice")
    for file in ("ca.pem", "revoked.pem"):
        (stranger / file).write_bytes((served.authority / "alice" / file).read_bytes())
    refused = ((stranger, "verify failed"), (served.authority / "expired", "expired"))
    for folder, why in (*refused, (served.authority / "mallory", "revoked"), (served.authority / "server", "purpose")):
        with pytest.raises(HandshakeError, match="the peer refused"):
            session.expect(Channel(tls(served, folder)), Welcome)
        assert why in served.server.wait_for("handshake_failed")["why"]
    check_a_good_client(served)


@pytest.mark.parametrize("digits", [16, 20, 64])
def test_a_program_is_insisted_on_by_the_first_digits_of_its_hash(served: Scene, digits: int) -> None:
    ours = served.program.content_hash
    with served.client(program=ours[:digits]) as client:
        assert client.program == served.program
    another = ours[: digits - 1] + ("0" if ours[digits - 1] != "0" else "1")
    with pytest.raises(PeerGaveUpError, match=f"serves the program {ours[:16]}, not the one asked for") as refused:
        served.client(program=another).__enter__()
    assert refused.value.where == f"127.0.0.1:{served.server.port}" and "Check the hash" in refused.value.remedy
    if digits == len(ours):
        served.server.wait_for("refused")


def test_another_program_version_or_order_is_refused(served: Scene) -> None:
    with pytest.raises(PeerGaveUpError, match="not the one asked for"):
        served.client(program="0" * 64).__enter__()
    assert "serves the program" in served.server.wait_for("refused")["why"]
    for message, why, remedy in (
        (
            Hello(99),
            rf"runs sphynx {__version__} \(wire {WIRE_VERSION}, service {SERVICE_VERSION}\), the client service 99",
            f"Install sphynx {__version__}, or ask a server of your version.",
        ),
        (Infer("00" * 16, 1), "not expected here", "Connect again."),
    ):
        channel = Channel(tls(served))
        session.send(channel, message)
        with pytest.raises(PeerGaveUpError, match=why) as refused:
            session.expect(channel, Welcome)
        assert refused.value.remedy == f"The peer advises: {remedy}"
        while not re.search(why, served.server.wait_for("refused")["why"]):
            continue  # other tests' clients were refused, too; the end of the log is an error
    for version in (WIRE_VERSION - 1, 77):
        other = tls(served)
        other.send([struct.pack("<2sBBI", b"Sx", version, 0, 2), b"{}"])
        with pytest.raises(PeerGaveUpError, match=f"version {version}"):
            Channel(other).receive(1)
    check_a_good_client(served)


@pytest.mark.parametrize("inside", [False, True])
def test_garbage_is_refused(served: Scene, inside: bool) -> None:
    for garbage in (os.urandom(3000), b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + os.urandom(100)):
        if inside:
            stream = tls(served)
            stream.send([garbage])
            served.server.wait_for("connection_lost", client="alice")
            stream.close()
        else:
            with socket.create_connection(("127.0.0.1", served.server.port)) as sock:
                sock.sendall(garbage)
                served.server.wait_for("handshake_failed")
    channel, _ = hello(served)
    channel.send(b'{"kind": "prepare", "count": 1e99}')
    with pytest.raises(PeerGaveUpError, match="sent an unexpected message"):
        channel.receive(1)
    check_a_good_client(served)


def test_slow_strangers_hold_nobody_up(served: Scene) -> None:
    """Silent ones, and one that dribbles."""
    where = ("127.0.0.1", served.server.port)
    slow = [socket.create_connection(where, source_address=(STRANGER, 0)) for _ in range(24)]
    check_a_good_client(served)
    dribbler = slow[0]
    # A valid beginning of a record, a byte at a time, until the server has had enough.
    for byte in b"\x16\x03\x01\x3f\xff" + bytes(16_000):
        readable, _, _ = select.select([dribbler], [], [], 0.02)
        if readable:
            break
        dribbler.send(bytes([byte]))
    assert select.select([dribbler], [], [], 0)[0]
    for sock in slow[1:]:
        sock.settimeout(20)
        assert sock.recv(1) == b""
        sock.close()


def test_a_slow_client_is_cut_off_and_others_are_served(served: Scene) -> None:
    slow = tls(served, "bob")
    slow.send([b"Sx\x01"])  # the beginning of a message, and no more
    check_a_good_client(served)
    lost = served.server.wait_for("connection_lost", client="bob")
    assert "in time" in lost["why"]
    with pytest.raises(PeerGaveUpError, match="in time"):
        Channel(slow).receive(1)


def test_a_client_that_stops_online_loses_its_bundle_only(served: Scene) -> None:
    state = served.client_state.with_name("stopped")
    where = ("--server", f"127.0.0.1:{served.server.port}", "--keys", served.authority / "bob", "--state", state)
    process = subprocess.Popen(
        command("online:SIGSTOP", "infer", served.picture, "--backend", "gmw", *where),
        cwd=ROOT,
        env=environment(served.server.audit),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        served.server.wait_for("prepared", client="bob")
        check_a_good_client(served)
        served.server.wait_for("connection_lost", client="bob")
    finally:
        process.kill()
        process.wait()
    check_a_good_client(served)


def test_a_bundle_cannot_be_replayed(served: Scene) -> None:
    with served.client() as client:
        client.prepare(1, backend="gmw")
        (entry,) = client.ready
        client.infer(served.pixels)
        with pytest.raises(BundleRefusedError, match="used before"):
            client._store.take(entry.bundle_id, owner=client._server, program=served.program.content_hash)
    channel, _ = hello(served)
    session.send(channel, Infer(entry.bundle_id.hex(), 1))
    with pytest.raises(PeerGaveUpError, match="used before"):
        channel.receive(1)
    assert "used before" in served.server.wait_for("refused")["why"]


def test_a_bundle_of_another_client_cannot_be_used(served: Scene) -> None:
    with served.client() as client:
        client.prepare(1, backend="gmw")
        (entry,) = client.ready
        channel, welcome = hello(served, "bob")
        assert entry.bundle_id.hex() not in welcome.ready
        session.send(channel, Infer(entry.bundle_id.hex(), 1))
        with pytest.raises(PeerGaveUpError, match="none with this identifier"):
            channel.receive(1)
        assert np.array_equal(client.infer(served.pixels).integer_logits, served.logits)


def test_limits_of_a_client(served: Scene) -> None:
    with (
        served.client() as client,
        pytest.raises(PeerGaveUpError, match="prepare 5: a client may keep 4 bundles") as refused,
    ):
        client.prepare(5, backend="gmw")
    assert "fewer" in refused.value.remedy and "the server's `bundles_per_client`" in refused.value.remedy
    with served.client() as client, pytest.raises(PeerGaveUpError, match="a batch has at most"):
        client.prepare(1, batch=17)
    channels = [hello(served)[0] for _ in range(Limits().connections_per_client)]
    with pytest.raises(PeerGaveUpError, match="too many connections"):
        hello(served)
    check_a_good_client(served, "bob")
    for channel in channels:
        channel.close()
        served.server.wait_for("disconnected", client="alice", result="lost")


def test_metrics_count_and_logs_hold_no_secret(served: Scene) -> None:
    check_a_good_client(served)
    served.server.wait_for("disconnected", result="done")
    url = f"http://127.0.0.1:{served.server.metrics_port}"
    text = urllib.request.urlopen(f"{url}/metrics", timeout=20).read().decode()
    done = sum(line["event"] == "inferred" for line in served.server.log)
    counted = [
        float(line.split()[-1]) for line in text.splitlines() if 'result="done"' in line and "inferences" in line
    ]
    assert sum(counted) == done > 0
    assert urllib.request.urlopen(f"{url}/healthz", timeout=20).status == 200
    known = {"time", "event", "client", "fingerprint", "address", "why", "where", "result", "host", "port", "name"}
    known |= {"metrics_port", "program", "bundles", "bundle", "backend", "batch", "seconds", "rounds"}
    known |= {"sent_bytes", "received_bytes", "suppressed", "ahead", "security", "reveal"}
    assert {key for line in served.server.log for key in line} <= known
    whole = json.dumps(served.server.log)
    assert not [logit for logit in served.logits if str(logit) in whole]


def test_a_signal_stops_the_server_whichever_thread_gets_it(scene: Scene) -> None:
    """The main thread waits for connections and would hear of it with the next one."""
    server = scene.server.start()
    assert server.process is not None
    main = server.process.pid
    other = next(int(task.name) for task in Path(f"/proc/{main}/task").iterdir() if int(task.name) != main)
    assert ctypes.CDLL(None).tgkill(main, other, int(signal.SIGTERM)) == 0
    server.wait_for("stopped")
    assert server.ended() == 0


def test_a_stopping_server_lets_running_work_finish(scene: Scene) -> None:
    server = scene.server.start()
    idle, _ = hello(scene, "bob")

    def stop_after_the_first(number: int) -> None:
        if number == 1 and server.process is not None:
            server.process.send_signal(signal.SIGTERM)

    with scene.client() as client:
        client.prepare(2, backend="gmw", done=stop_after_the_first)
        server.wait_for("stopping")  # a signal is handled when the main thread gets its turn
        with pytest.raises(PeerGaveUpError, match="stopping"):
            client.infer(scene.pixels)
    with pytest.raises(PeerGaveUpError, match="stopping"):
        idle.receive(1)
    assert server.ended() == 0
    assert server.log[-1]["event"] == "stopped" and server.log[-1]["aborted"] == 0
