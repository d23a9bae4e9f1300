"""Peers that ask, send or wait more than they may: they end, the memory and the places of others stay free."""

from __future__ import annotations

import io
import select
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sphynx.protocol.stream import ConnectionLostError
from sphynx.service import session
from sphynx.service.admission import Limits
from sphynx.service.credentials import client_context, server_context
from sphynx.service.session import MAX_PING_BYTES, Bye, Ping
from sphynx.service.tls import TlsStream
from tests.service.key_updates import CIPHER, key_updates
from tests.service.test_limits import AwaitedLog, serving

BEYOND_KERNEL = 48  # answers of MAX_PING_BYTES: more than both ends' socket buffers take


def test_who_asks_on_without_reading_is_cut_off(tmp_path: Path, authority: Path) -> None:
    """Otherwise each connection could make the server keep 128 MB of answers, and a goodbye would free its place."""
    log = AwaitedLog("the peer reads too slowly")
    with serving(tmp_path, authority, Limits(message_s=3), log) as (client, server), client:
        for _ in range(BEYOND_KERNEL):
            session.send(client._channel, Ping(0, MAX_PING_BYTES))
            client._channel.send(b"")
        session.send(client._channel, Bye())
        assert log.written.wait(timeout=60)
        assert server.metrics.value("connections_total", result="done") == 0


def test_answers_that_are_read_have_no_end(tmp_path: Path, authority: Path) -> None:
    with serving(tmp_path, authority, Limits(message_s=30), io.StringIO()) as (client, server), client:
        for _ in range(BEYOND_KERNEL):
            session.send(client._channel, Ping(0, MAX_PING_BYTES))
            client._channel.send(b"")
        for _ in range(BEYOND_KERNEL):
            client._channel.receive(MAX_PING_BYTES)
        assert server.metrics.value("connections_total", result="lost") == 0


@pytest.mark.parametrize(("wants_answer", "why"), [(False, "did not answer in time"), (True, "renews its keys")])
def test_records_without_data_do_not_stop_the_clock(
    authority: Path, tmp_path: Path, wants_answer: bool, why: str
) -> None:
    """They are read a slice at a time: the deadline, or what they want answered, ends the rest unread."""
    left, right = socket.socketpair()
    context = client_context(authority / "alice")
    context.keylog_filename = str(tmp_path / "secrets")
    with ThreadPoolExecutor(1) as pool:
        serving = pool.submit(TlsStream.accept, left, server_context(authority / "server"), handshake_s=20)
        client = TlsStream.connect(right, context, "localhost", handshake_s=20)
        server = serving.result()
        cipher = client._tls._object.cipher()
        assert cipher is not None and cipher[0] == CIPHER
        flood = b"".join(key_updates(tmp_path / "secrets", 30_000, wants_answer=wants_answer))
        right.setblocking(True)
        sending = pool.submit(right.sendall, flood)
        select.select([left], [], [])
        with pytest.raises(ConnectionLostError, match=why):
            server.receive(1, timeout_s=60 if wants_answer else 0)
        assert not sending.done() or left.recv(1)
        server.close()
        sending.exception()
    right.close()
