"""Owner and workers that run out of descriptors, or of processes, or whose calls fail: one conversation pays for it."""

from __future__ import annotations

import errno
import io
import json
import os
import resource
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sphynx.errors import BundleRefusedError, SphynxError
from sphynx.service.admission import Admission
from sphynx.service.events import EventLog
from sphynx.service.fleet import Fleet
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.ledger import Ledger
from sphynx.service.listening import CALL, DONE, MAX_NOTE_BYTES, HandedOver, PortListener
from sphynx.service.metrics import Metrics
from sphynx.service.owner import Owner
from sphynx.service.owner_link import OwnedLedger, OwnerLink
from sphynx.service.settings import Limits, ServerSettings
from sphynx.service.store import Store
from sphynx.service.worker import WorkerOrder
from tests.service.tiny import OWNER, some_entry, tiny_program


@contextmanager
def no_descriptor_left() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def control() -> Iterator[tuple[socket.socket, socket.socket]]:
    """The owner's end and a worker's."""
    owners, workers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with owners, workers:
        yield owners, workers


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def not_lost() -> None:
    raise AssertionError("the owner is there")


def test_a_call_that_fails_unforeseen_fails_alone(
    tmp_path: Path, control: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    owners, workers = control
    owner = Owner(Ledger(tmp_path / "ledger"), Admission(Limits()), EventLog(io.StringIO()))
    link = OwnerLink(workers, not_lost)
    ledger = OwnedLedger(link, "a-worker")

    def serve() -> None:
        _note, descriptors, _flags, _address = socket.recv_fds(owners, MAX_NOTE_BYTES, 1)
        owner.serve(socket.socket(fileno=descriptors[0]), Metrics().new_part())

    serving = threading.Thread(target=serve)
    serving.start()
    entry = some_entry()
    ledger.reserve(entry)
    with pytest.raises(SphynxError, match=r"failed \(ValueError\)"):
        link.call("ledger.burn", bundle_id=entry.bundle_id, owner=OWNER)
    monkeypatch.setattr(Ledger, "kept_bytes", lambda _ledger, owner: len(owner) // 0)
    with pytest.raises(SphynxError, match=r"failed \(ZeroDivisionError\)"):
        ledger.kept_bytes(OWNER)
    with pytest.raises(BundleRefusedError, match="it is not ready"):
        ledger.burn(entry.bundle_id, owner=OWNER, program=tiny_program().content_hash)
    assert ledger.state(entry.bundle_id) == "reserved"
    link.end_thread()
    serving.join()


def test_a_worker_without_descriptors_cannot_ask_now_but_later(control: tuple[socket.socket, socket.socket]) -> None:
    owners, workers = control
    link = OwnerLink(workers, not_lost)
    with no_descriptor_left(), pytest.raises(SphynxError, match="is not answering"):
        link.call("ledger.expired")

    def refuse() -> None:
        """As an owner that has no descriptor left for the connection."""
        note, descriptors, _flags, _address = socket.recv_fds(owners, MAX_NOTE_BYTES, 1)
        assert note == CALL
        os.close(descriptors[0])

    refusing = threading.Thread(target=refuse)
    refusing.start()
    with pytest.raises(SphynxError, match="is not answering"):
        link.call("ledger.expired")
    refusing.join()


def test_a_connection_that_a_worker_has_no_descriptor_for_is_over(
    control: tuple[socket.socket, socket.socket],
) -> None:
    owners, workers = control
    handed_over = HandedOver(workers, not_lost, lambda: None)
    mine, clients = socket.socketpair()
    with clients:
        with mine:
            socket.send_fds(owners, [b"192.0.2.1"], [mine.fileno()])
        with no_descriptor_left(), pytest.raises(OSError, match=os.strerror(errno.EMFILE)):
            handed_over.accept()
        assert owners.recv(MAX_NOTE_BYTES) == DONE
        assert clients.recv(1) == b""  # the kernel has closed it


def test_workers_that_cannot_be_started_are_logged(
    tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "no python here"))
    order = WorkerOrder(tmp_path, ServerSettings(keys=tmp_path, state=tmp_path), 0, cores=1, control=0)
    log = io.StringIO()
    with Store(tmp_path / "state", quota_bytes=1000) as store:
        listener = PortListener("127.0.0.1", 0)
        fleet = Fleet(order, 2, store, listener, FreshKeys(authority / "server", None, print), EventLog(log))
        before = open_descriptors()
        with pytest.raises(SphynxError, match="a worker process did not start"):
            fleet.start()
        assert open_descriptors() == before - 1  # the listener
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    assert [(line["event"], line["worker"]) for line in lines] == [("worker_not_started", 0), ("worker_not_started", 1)]
