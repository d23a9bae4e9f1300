"""Limits that take a server of their own, in this process: hours, work, workers, disk, and what is unforeseen."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sphynx.errors import InputError, PeerGaveUpError
from sphynx.program.ir import Program
from sphynx.protocol.inference_server import InferenceServer
from sphynx.protocol.linear import ServerModel
from sphynx.service import session
from sphynx.service.admission import Admission
from sphynx.service.client import Client
from sphynx.service.events import EventLog
from sphynx.service.listening import PortListener
from sphynx.service.proxy_header import NO_PROXIES, ProxyNetworks
from sphynx.service.server import Offer, Server
from sphynx.service.session import Go, Infer, Prepare
from sphynx.service.settings import Limits
from sphynx.service.store import Store
from sphynx.service.strikes import Strikes
from tests.program.programs import random_weights
from tests.service.tiny import tiny_program

PIXELS = np.zeros((1, 4, 4), np.uint8)


@contextmanager
def serving(
    folder: Path,
    authority: Path,
    limits: Limits,
    log: io.StringIO,
    program: Program | None = None,
    proxies: ProxyNetworks = NO_PROXIES,
) -> Iterator[tuple[Client, Server]]:
    """A server thread, and a client that is not connected yet."""
    program = program or tiny_program()
    model = ServerModel(program, random_weights(program))
    with Store(folder / "server", quota_bytes=limits.quota_bytes) as store:
        listener = PortListener("127.0.0.1", 0)
        server = Server(
            [Offer(model, store)],
            keys=authority / "server",
            listener=listener,
            admission=Admission(limits),
            events=EventLog(log),
            strikes=Strikes(folder / "strikes"),
            proxies=proxies,
        )
        thread = threading.Thread(target=server.serve)
        thread.start()
        try:
            keys, state = authority / "alice", folder / "client"
            yield Client("127.0.0.1", listener.port, timeout_s=30, keys=keys, state=state), server
        finally:
            server.stop()
            thread.join()


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"queue_s": -1.0}, {"quota_bytes": -1}])
def test_limits_by_which_nobody_could_be_served_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        Limits(**wrong)
    assert Limits(grace_s=0, unread_bytes=0).grace_s == 0  # these may be


def test_no_more_bundles_for_a_client_than_the_server_can_name() -> None:
    """It names them at the beginning of a conversation; what it does not name the client would discard."""
    most = Limits(bundles_per_client=session.MAX_IDS)
    with pytest.raises(InputError, match="bundles_per_client = 257: must be at most 256"):
        Limits(bundles_per_client=most.bundles_per_client + 1)
    ids = tuple(f"{number:032x}" for number in range(most.bundles_per_client))
    welcome = session.Welcome(
        session.SERVICE_VERSION, "ab" * 32, 10, ids, session.MAX_BURNS - 1, len(ids), "malicious-client", 48, 8
    )
    text = json.dumps({"kind": "welcome", **asdict(welcome)}).encode()
    assert len(text) <= session.MAX_MESSAGE_BYTES and session.parse(text) == welcome


def test_images_per_hour(tmp_path: Path, authority: Path) -> None:
    with serving(tmp_path, authority, Limits(), io.StringIO()) as (client, _), client:
        client.prepare(3, backend="gmw")
    with serving(tmp_path, authority, Limits(images_per_hour=2), io.StringIO()) as (client, _), client:
        for _ in range(2):
            client.infer(PIXELS)
        with pytest.raises(PeerGaveUpError, match="2 images inferred per hour"):
            client.infer(PIXELS)


def test_a_batch_counts_with_all_its_images(tmp_path: Path, authority: Path) -> None:
    with serving(tmp_path, authority, Limits(images_per_hour=4), io.StringIO()) as (client, _), client:
        client.prepare(2, backend="gmw", batch=2)
    with serving(tmp_path, authority, Limits(images_per_hour=3), io.StringIO()) as (client, _), client:
        client.infer_batch(np.stack([PIXELS] * 2))
        with pytest.raises(PeerGaveUpError, match="3 images inferred per hour"):
            client.infer_batch(np.stack([PIXELS] * 2))


class AwaitedLog(io.StringIO):
    """Says when a word was written: what happens after that can no longer hide it."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self._word, self.written = word, threading.Event()

    def write(self, text: str) -> int:
        count = super().write(text)
        if self._word in text:
            self.written.set()
        return count


def test_work_that_takes_too_long_is_cut_off(tmp_path: Path, authority: Path) -> None:
    """Each message of a peer may be in time, and all together still too slow."""
    log = AwaitedLog("connection_lost")
    with serving(tmp_path, authority, Limits(work_s=0.2), log) as (client, _), client:
        session.send(client._channel, Prepare(1, "gmw", 1, session.new_nonce()))
        session.expect(client._channel, Go)
        with pytest.raises(PeerGaveUpError, match="did not answer in time"):
            client._channel.receive(1)
        assert log.written.wait(timeout=30)  # before the server stops, which would be another reason


def test_a_full_disk_is_said_before_the_work_is_done(tmp_path: Path, authority: Path) -> None:
    log = io.StringIO()
    with serving(tmp_path, authority, Limits(quota_bytes=1000), log) as (client, _):
        with client, pytest.raises(PeerGaveUpError, match=r"no space for another bundle$"):
            client.prepare(1, backend="gmw")
        with client:
            assert not client.ready
    assert "1,000 bytes for bundles" in log.getvalue()


def test_no_worker_in_time(tmp_path: Path, authority: Path) -> None:
    limits = Limits(workers=1, queue_s=0.05)
    with serving(tmp_path, authority, limits, io.StringIO()) as (client, server):
        assert server._admission.offline.try_take("somebody else")
        with client, pytest.raises(PeerGaveUpError, match="busy"):
            client.prepare(1, backend="gmw")
        server._admission.offline.give_back("somebody else")
        with client:
            client.prepare(1, backend="gmw")


def test_a_client_that_falls_silent_in_an_inference_holds_its_worker_for_a_moment_only(
    tmp_path: Path, authority: Path
) -> None:
    """One worker: the silent one would keep it for `message_s`, an hour here."""
    limits, log = Limits(workers=1, message_s=3600.0, online_message_s=0.2), AwaitedLog("connection_lost")
    with serving(tmp_path, authority, limits, log) as (alice, server), alice:
        alice.prepare(1, backend="gmw")
        session.send(alice._channel, Infer(alice.ready[0].bundle_id.hex(), 1))
        assert log.written.wait(timeout=30)
        with Client("127.0.0.1", server.port, keys=authority / "bob", state=tmp_path / "bob", timeout_s=30) as bob:
            assert bob.infer(PIXELS).backend in ("gc", "gmw")


def test_an_unforeseen_error_ends_one_conversation_and_says_nothing_of_values(
    tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = io.StringIO()
    with serving(tmp_path, authority, Limits(), log) as (client, _):
        with monkeypatch.context() as patch, client:

            def fail(*_: object) -> None:
                raise ValueError("share 123456789")

            patch.setattr(InferenceServer, "prepare_each", fail)
            with pytest.raises(PeerGaveUpError, match="the server failed"):
                client.prepare(1, backend="gmw")
        with client:
            client.infer(PIXELS)
    events = [json.loads(line) for line in log.getvalue().splitlines()]
    (failure,) = (event for event in events if event["event"] == "internal_error")
    assert failure["kind"] == "ValueError" and "test_limits.py" in failure["place"]
    assert "123456789" not in log.getvalue()
