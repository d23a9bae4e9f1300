"""Peers that ask, send or wait more than they may: they end, the memory and the places of others stay free."""

from __future__ import annotations

import io
import select
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sphynx.errors import ConnectionLostError, PeerGaveUpError
from sphynx.program.interpret import interpret
from sphynx.protocol.channel import Section
from sphynx.service import session
from sphynx.service.credentials import client_context, server_context
from sphynx.service.session import MAX_PING_BYTES, Bye, Ping
from sphynx.service.settings import Limits
from sphynx.service.tls import TlsStream
from tests.program.programs import random_weights
from tests.service.key_updates import CIPHER, key_updates
from tests.service.test_limits import AwaitedLog, serving
from tests.service.tiny import wide_program

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


def test_where_memory_is_short_who_reads_is_served_and_who_does_not_is_cut_off(
    tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None at all here, beyond what each connection may keep. The tables of one bundle would fit a connection's 128 MB:
    the server would have made them all, and kept them."""
    program, limits, log = wide_program(), Limits(message_s=3, unread_bytes=0), AwaitedLog("the peer reads too slowly")
    with serving(tmp_path, authority, limits, log, program) as (client, server):
        with client:
            pixels = np.random.default_rng(0).integers(0, 256, (1, 64, 64), np.uint8)
            client.prepare(1, backend="gc")
            expected = interpret(program, random_weights(program), pixels[None])[0]
            assert np.array_equal(client.infer(pixels).integer_logits, expected)
        with client, ThreadPoolExecutor(1) as pool:
            channel, receive, ended = client._channel, client._channel.receive, threading.Event()

            def receive_no_tables(size: int, **options: float) -> bytearray:
                if channel._section == Section("offline", "relu"):
                    ended.wait()
                return receive(size, **options)

            monkeypatch.setattr(channel, "receive", receive_no_tables)
            preparing = pool.submit(client.prepare, 1, backend="gc")
            assert log.written.wait(timeout=60)
            ended.set()
            with pytest.raises((ConnectionLostError, PeerGaveUpError)):
                preparing.result()
        assert server.metrics.value("bundles_prepared_total", backend="gc") == 1
        assert "sphynx_unread_bytes 0" in server.render_metrics()


@pytest.mark.parametrize(
    ("wants_answer", "why"), [(False, "did not answer in time"), (True, "keeps renewing its keys")]
)
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
