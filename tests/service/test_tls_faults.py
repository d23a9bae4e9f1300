"""Connections that TLS does not allow, each with its own reason, address and remedy."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from sphynx.errors import HandshakeError, InputError
from sphynx.service import keys
from sphynx.service.client import Client
from sphynx.service.credentials import check_server_keys
from tests.service.authority import LONG_AGO
from tests.service.scene import Scene


@contextmanager
def something_else(answer: bytes) -> Iterator[int]:
    """The port of a program that answers a ClientHello with something else, and hangs up."""

    def serve(listener: socket.socket) -> None:
        sock, _ = listener.accept()
        with sock:
            sock.recv(1 << 14)
            sock.sendall(answer)

    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:
        serving = pool.submit(serve, listener)
        yield listener.getsockname()[1]
        serving.result()


def refused(port: int, folder: Path, state: Path, host: str = "127.0.0.1", timeout_s: float = 30.0) -> HandshakeError:
    with pytest.raises(HandshakeError) as caught:
        Client(host, port, keys=folder, state=state, timeout_s=timeout_s, connect_s=600).__enter__()
    assert caught.value.where == f"{host}:{port}"
    return caught.value


def test_another_program_on_the_port(authority: Path, tmp_path: Path) -> None:
    with something_else(b"HTTP/1.0 400 Bad Request\r\n\r\n") as port:
        error = refused(port, authority / "alice", tmp_path)
    assert error.what == "the peer does not speak TLS (wrong version number)"
    assert "a program other than a Sphynx server" in error.remedy
    with something_else(b"") as port:
        error = refused(port, authority / "alice", tmp_path)
    assert error.what == "the peer closed the connection during the TLS handshake"
    assert "address and the port" in error.remedy


def test_a_silent_port_is_given_up_after_the_time_for_an_answer(authority: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        error = refused(listener.getsockname()[1], authority / "alice", tmp_path, timeout_s=0.2)
    assert "in time" in error.what and "address and the port" in error.remedy


def test_keys_that_a_server_does_not_admit(scene: Scene, tmp_path: Path) -> None:
    scene.server.start()
    error = refused(scene.server.port, scene.authority / "mallory", tmp_path / "state")
    assert error.what == "the peer refused: certificate revoked" and "to sign new keys" in error.remedy
    keys.init(tmp_path / "other")
    stranger = keys.issue(tmp_path / "other", "alice")
    error = refused(scene.server.port, stranger, tmp_path / "state")
    assert "verify failed" in error.what and "the authority of the server's keys" in error.remedy
    assert scene.server.stop() == 0


def test_a_client_s_keys_are_judged_before_it_connects(authority: Path, tmp_path: Path) -> None:
    for name, why, remedy in (
        ("server", "purpose", "Give keys that were signed for a client: sphynx keys sign NAME --client."),
        ("expired", "expired", "Renew them: sphynx keys renew NAME."),
    ):
        with pytest.raises(InputError, match=rf"{name}: no server would accept these keys: .*{why}") as caught:
            Client("127.0.0.1", 1, keys=authority / name, state=tmp_path / "state").__enter__()
        assert caught.value.remedy == remedy
    assert not (tmp_path / "state").exists()


def test_a_server_s_expired_keys_have_their_own_remedy(authority: Path, tmp_path: Path) -> None:
    keys.init(tmp_path)
    expired = keys.issue(tmp_path, "server", hosts=["localhost"], days=30, start=LONG_AGO)
    for folder, why, remedy in (
        (expired, "expired", "Renew this server's keys"),
        (authority / "alice", "purpose", "Give keys that were"),
    ):
        with pytest.raises(InputError, match=f"no client would accept these keys: .*{why}") as caught:
            check_server_keys(folder)
        assert caught.value.remedy.startswith(remedy)
