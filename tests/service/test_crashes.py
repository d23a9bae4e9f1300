"""Either side killed in every phase: the other says so, the next inference is right, no bundle serves twice."""

from __future__ import annotations

import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sphynx.errors import ConnectionLostError, HandshakeError
from sphynx.service.client import Client
from tests.service.processes import used_twice
from tests.service.scene import Scene

LOST = "closed|reset|pipe"


def test_the_client_dies_in_every_phase(scene: Scene) -> None:
    server = scene.server.start()
    socket.create_connection(("127.0.0.1", server.port)).close()
    server.wait_for("handshake_failed")
    for phase in ("setup", "offline", "online"):
        assert scene.infer(scene.picture, fault=f"{phase}:SIGKILL").returncode == -signal.SIGKILL
        lost = server.wait_for("connection_lost")
        assert "closed" in lost["why"]
        server.wait_for("disconnected", result="lost")
    assert scene.states(scene.client_state)[-1] == "burned"
    scene.check_inference()
    assert server.stop() == 0
    assert scene.states(scene.server.state) == ["discarded", "discarded", "burned", "burned"]
    assert not used_twice(server.audit)


def test_the_server_dies_in_every_phase(scene: Scene) -> None:
    server = scene.server
    for phase in ("setup", "offline"):
        server.fault = f"{phase}:SIGKILL"
        server.start()
        with pytest.raises(ConnectionLostError, match=LOST), scene.client() as client:
            client.prepare(1, backend="gmw")
        assert server.ended() == -signal.SIGKILL
    server.fault = "none"
    server.start()
    with scene.client() as client:
        client.prepare(2, backend="gc")
    assert server.stop() == 0
    # Bundles outlive both processes. The first of these dies with the server, the second serves.
    server.fault = "online:SIGKILL"
    server.start()
    done = scene.infer(scene.picture)
    assert done.returncode == 1
    assert "error: " in done.stderr and "remedy: " in done.stderr and "Traceback" not in done.stderr
    assert server.ended() == -signal.SIGKILL
    assert scene.states(scene.server.state)[-1] == scene.states(scene.client_state)[-1] == "burned"
    server.fault = "none"
    server.start()
    scene.check_inference()
    assert server.stop() == 0
    for folder in (scene.server.state, scene.client_state):
        assert scene.states(folder).count("burned") == 2 and "ready" not in scene.states(folder)
    assert not used_twice(server.audit)


def test_the_server_dies_in_the_handshake(authority: Path, tmp_path: Path) -> None:
    def accept_and_die(listener: socket.socket) -> None:
        sock, _ = listener.accept()
        sock.recv(1)
        sock.close()

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        dying = pool.submit(accept_and_die, listener)
        client = Client("127.0.0.1", listener.getsockname()[1], keys=authority / "alice", state=tmp_path)
        with pytest.raises(HandshakeError), client:
            pass
        dying.result()


def test_the_server_dies_between_the_phases(scene: Scene) -> None:
    server = scene.server.start()
    with scene.client() as client:
        client.prepare(1, backend="gmw")
        server.stop(signal.SIGKILL)
        with pytest.raises(ConnectionLostError, match=LOST):
            client.infer(scene.pixels)
    assert scene.states(scene.client_state) == ["burned"]
    server.start()
    scene.check_inference()
    assert server.stop() == 0
    # The half that only the server still had was dropped when the client came back.
    assert sorted(scene.states(scene.server.state)) == ["burned", "discarded"]
    assert not used_twice(server.audit)


def test_a_server_that_stops_answering_is_given_up(scene: Scene) -> None:
    scene.server.fault = "online:SIGSTOP"
    scene.server.start()
    with pytest.raises(ConnectionLostError, match="did not answer in time"), scene.client(timeout_s=5) as client:
        client.infer(scene.pixels)
    assert scene.states(scene.client_state) == ["burned"]


def test_bundles_of_other_weights_are_not_used(scene: Scene) -> None:
    """The program, and so its hash, is the same; the shares in the bundles are not."""
    server = scene.server.start()
    with scene.client() as client:
        client.prepare(2, backend="gmw")
    assert server.stop() == 0
    scene.use_weights(seed=9)
    server.start()
    scene.check_inference()
    assert server.stop() == 0
    assert sorted(scene.states(scene.client_state)) == ["burned", "discarded", "discarded"]
