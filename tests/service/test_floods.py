"""Peers that ask, send or wait more than they may: they end, the memory and the places of others stay free."""

from __future__ import annotations

import io
from pathlib import Path

from sphynx.service import session
from sphynx.service.admission import Limits
from sphynx.service.session import MAX_PING_BYTES, Bye, Ping
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
