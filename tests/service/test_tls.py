"""TLS between two threads over a real socket: who is let in, what is refused, and that bytes arrive whole."""

from __future__ import annotations

import os
import shutil
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sphynx.errors import ConnectionLostError, HandshakeError, InputError
from sphynx.protocol.channel import Channel
from sphynx.protocol.transport import Buffer
from sphynx.service import keys
from sphynx.service.credentials import check_server_keys, client_context, server_context
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.tls import RECORD_BYTES, SLICE_BYTES, TlsStream, slices


def connect(server_keys: Path, client_keys: Path, host: str = "localhost") -> tuple[TlsStream, TlsStream]:
    """Both ends, or the server's refusal."""
    left, right = socket.socketpair()
    with ThreadPoolExecutor(1) as pool:
        serving = pool.submit(TlsStream.accept, left, server_context(server_keys), handshake_s=20, timeout_s=20)
        try:
            client = TlsStream.connect(right, client_context(client_keys), host, handshake_s=20, timeout_s=20)
        except HandshakeError:
            right.close()
            serving.exception()
            raise
        try:
            return serving.result(), client
        except HandshakeError:
            # In TLS 1.3 the client learns of a refusal when it reads.
            with pytest.raises(HandshakeError, match="the peer refused"):
                client.receive(1)
            raise


def test_both_sides_know_each_other_and_large_messages_cross(authority: Path) -> None:
    server, client = map(Channel, connect(authority / "server", authority / "alice"))
    big = os.urandom((20 << 20) + 12_345)
    server.send(big[:5], big[5:])
    client.send(big)
    assert client.receive(len(big)) == big
    assert server.receive(len(big)) == big
    client.close()
    with pytest.raises(ConnectionLostError, match="closed"):
        server.receive(1)
    server.close()


def test_the_peer_is_named_by_its_certificate(authority: Path) -> None:
    server, client = connect(authority / "server", authority / "alice")
    assert (server.peer.name, client.peer.name) == ("alice", "server")
    again, _ = connect(authority / "server", authority / "alice")
    other, _ = connect(authority / "server", authority / "bob")
    assert server.peer.fingerprint == again.peer.fingerprint != other.peer.fingerprint
    assert server.peer.identity == again.peer.identity != other.peer.identity
    (issued,) = (party for party in keys.list_parties(authority) if party.name == "alice")
    assert (server.peer.serial, server.peer.expires_at) == (issued.serial, issued.not_after.timestamp())


@pytest.mark.parametrize(("name", "why"), [("mallory", "revoked"), ("expired", "expired"), ("server", "purpose")])
def test_a_client_that_may_not_connect_is_refused(authority: Path, name: str, why: str) -> None:
    with pytest.raises(HandshakeError, match=why):
        connect(authority / "server", authority / name)


def test_keys_of_another_authority_are_refused_by_both_sides(authority: Path, tmp_path: Path) -> None:
    keys.init(tmp_path / "other")
    stranger = keys.issue(tmp_path / "other", "alice")
    with pytest.raises(HandshakeError, match="verify failed"):
        connect(authority / "server", stranger)
    # One that trusts the server, but whose own certificate is the other authority's.
    shutil.copy(authority / "alice" / "ca.pem", stranger)
    shutil.copy(authority / "alice" / "revoked.pem", stranger)
    with pytest.raises(HandshakeError, match="verify failed"):
        connect(authority / "server", stranger)


@pytest.mark.parametrize("host", ["elsewhere.example", "192.0.2.1"])
def test_a_server_of_another_name_is_refused(host: str, authority: Path) -> None:
    with pytest.raises(HandshakeError, match=host) as caught:
        connect(authority / "server", authority / "alice", host)
    assert "sphynx keys sign" in caught.value.remedy


def test_a_client_without_certificate_or_with_old_tls_is_refused(authority: Path) -> None:
    bare = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    bare.load_verify_locations(authority / "alice" / "ca.pem")
    old = client_context(authority / "alice")
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
    for context, why in ((bare, "did not return a certificate"), (old, "unsupported protocol")):
        left, right = socket.socketpair()
        with ThreadPoolExecutor(1) as pool:
            serving = pool.submit(TlsStream.accept, left, server_context(authority / "server"), handshake_s=20)
            try:
                TlsStream.connect(right, context, "localhost", handshake_s=20)
            except HandshakeError:
                right.close()
            with pytest.raises(HandshakeError, match=why):
                serving.result()


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\n\r\n", os.urandom(600), b"\x16\x03\x01\x02\x00\x01"])
def test_garbage_and_silence_end_the_handshake(authority: Path, sent: bytes) -> None:
    raw, ours = socket.socketpair()
    raw.sendall(sent)
    with pytest.raises(HandshakeError):
        TlsStream.accept(ours, server_context(authority / "server"), handshake_s=0.1)


def test_changed_ciphertext_ends_the_connection(authority: Path) -> None:
    server, client = connect(authority / "server", authority / "alice")
    record = bytearray(client._tls.seal(b"a message"))
    record[-1] ^= 1
    client._sock.send(record)
    with pytest.raises(ConnectionLostError, match="bad record mac"):
        server.receive(9)


def test_a_revocation_is_seen_without_a_restart(tmp_path: Path) -> None:
    keys.init(tmp_path)
    server, alice = keys.issue(tmp_path, "server", hosts=["localhost"]), keys.issue(tmp_path, "alice")
    fresh = FreshKeys(server)
    before = fresh.context()
    assert fresh.context() is before
    end, _ = connect(server, alice)
    assert not fresh.is_revoked(end.peer.serial)
    keys.revoke(tmp_path, "alice")
    assert fresh.is_revoked(end.peer.serial)
    assert fresh.context() is not before
    with pytest.raises(HandshakeError, match="revoked"):
        connect(server, alice)


def test_keys_that_no_client_would_accept_are_refused_before_serving(authority: Path, tmp_path: Path) -> None:
    check_server_keys(authority / "server")
    with pytest.raises(InputError, match=r"alice: no client would accept these keys: .*purpose"):
        check_server_keys(authority / "alice")
    keys.init(tmp_path)
    keys.issue(tmp_path, "server", hosts=["localhost"])
    keys.revoke(tmp_path, "server")
    with pytest.raises(InputError, match="revoked"):
        check_server_keys(tmp_path / "server")


def test_a_readable_private_key_and_missing_files_are_refused(authority: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(authority / "alice", tmp_path / "alice"))
    (copy / "key.pem").chmod(0o640)
    with pytest.raises(InputError, match="other users of this machine"):
        client_context(copy)
    (copy / "revoked.pem").unlink()
    with pytest.raises(InputError, match=r"there is no revoked\.pem"):
        client_context(copy)


def test_a_message_of_several_records_is_one_write(authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, client = connect(authority / "server", authority / "alice")
    written: list[int] = []
    hand_over = server._hand_over

    def counted(sealed: list[Buffer]) -> None:
        written.append(len(sealed))
        hand_over(sealed)

    monkeypatch.setattr(server, "_hand_over", counted)
    message = os.urandom(5 * RECORD_BYTES)
    Channel(server).send(message)
    assert len(written) == 1
    assert Channel(client).receive(len(message)) == message
    server.close()
    client.close()


@given(st.lists(st.integers(0, 3 * SLICE_BYTES), max_size=5), st.integers(0, 1000))
def test_slices_keep_the_bytes(sizes: list[int], seed: int) -> None:
    parts = [bytes([(seed + number) % 256]) * size for number, size in enumerate(sizes)]
    sliced = [bytes(part) for part in slices(list(parts))]
    assert b"".join(sliced) == b"".join(parts)
    assert all(0 < len(part) <= SLICE_BYTES for part in sliced)
