"""A worker that was taken over by what it parsed, against a real owner over real sockets: it runs no code there, takes
no memory without bound, and gets no more than the owner's limits."""

from __future__ import annotations

import io
import json
import os
import pickle
import signal
import socket
import struct
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sphynx.errors import BundleRefusedError, SphynxError
from sphynx.service.admission import Admission
from sphynx.service.calls import MAX_ANSWER_BYTES, MAX_CALL_BYTES, read_answer, read_frame, send_frame, write_call
from sphynx.service.events import EventLog
from sphynx.service.fleet import Fleet
from sphynx.service.fresh_keys import FreshKeys
from sphynx.service.ledger import Ledger
from sphynx.service.listening import CALL, DONE, READY, PortListener
from sphynx.service.metrics import METRICS, Metrics
from sphynx.service.owner import Owner
from sphynx.service.settings import Limits, ServerSettings
from sphynx.service.store import Store
from sphynx.service.worker import WorkerOrder
from tests.service.tiny import OWNER, some_entry


class TakenOver:
    """One connection for calls, whose other end the owner serves."""

    def __init__(self, sock: socket.socket, ledger: Ledger, admission: Admission, log: io.StringIO) -> None:
        self.sock, self.ledger, self.admission, self._log = sock, ledger, admission, log

    def call(self, name: str, **arguments: object) -> Any:
        send_frame(self.sock, write_call(name, arguments))
        return self.answer(name)

    def answer(self, name: str = "ledger.state") -> Any:
        frame = read_frame(self.sock, MAX_ANSWER_BYTES)
        assert frame is not None
        return read_answer(name, frame)

    def is_hung_up_on(self) -> bool:
        try:
            return self.sock.recv(1) == b""
        except ConnectionResetError:  # it left bytes unread
            return True

    @property
    def logged(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.getvalue().splitlines()]


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[TakenOver]:
    limits, log, metrics = (
        Limits(bundles_per_client=2, images_per_hour=3, queue_s=0.01, workers=2),
        io.StringIO(),
        Metrics(),
    )
    ledger, admission = Ledger(tmp_path / "ledger"), Admission(limits)
    theirs, owners = socket.socketpair()
    theirs.settimeout(20)
    owner = Owner(ledger, admission, EventLog(log))
    serving = threading.Thread(target=owner.serve, args=(owners, metrics.new_part()))
    serving.start()
    with theirs:
        yield TakenOver(theirs, ledger, admission, log)
    serving.join(20)
    assert not serving.is_alive()
    assert not any(places.taken for places in admission.places.values())
    ledger.close()


class _Code:
    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self._path,)


@pytest.mark.parametrize("length", [struct.Struct("!i"), struct.Struct("<I")])
def test_a_pickle_runs_no_code_in_the_owner(worker: TakenOver, tmp_path: Path, length: struct.Struct) -> None:
    """Send it in the frames of Python's `multiprocessing`, and in those of the owner."""
    content = pickle.dumps(_Code(tmp_path / "ran"))
    worker.sock.sendall(length.pack(len(content)) + content)
    if length.format.startswith("<"):
        with pytest.raises(SphynxError, match="failed"):
            worker.answer()
    else:
        assert worker.is_hung_up_on()
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("size_bytes", [MAX_CALL_BYTES + 1, 0x7FFFFFFF, 0xFFFFFFFF])
def test_a_length_is_refused_before_anything_is_read_for_it(worker: TakenOver, size_bytes: int) -> None:
    tracemalloc.start()
    try:
        worker.sock.sendall(struct.pack("<I", size_bytes))
        assert worker.is_hung_up_on()
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert [line["event"] for line in worker.logged] == ["worker_refused"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * MAX_CALL_BYTES,
        b'{"call": "ledger.close"}',
        b'{"call": "ledger._file"}',
        b'{"call": ["ledger.state"]}',
        b'{"call": "ledger.state"}',
        b'{"call": "ledger.state", "bundle_id": "00"}',
        b'{"call": "ledger.state", "bundle_id": "%s", "more": 1}' % (b"0" * 32),
        b'{"call": "metrics", "values": [["a_metric_of_its_own", [], 1]]}',
        b'{"call": "metrics", "values": [["connections_total", [], NaN]]}',
        b'{"call": "metrics", "values": [["connections_total", [["a", "\\" 1\\n"]], 1]]}',
        b'{"call": "offline.take", "holder": "a", "wait_s": 1e999}',
        b'{"call": "offline.take", "holder": "a", "wait_s": 1%s}' % (b"0" * 4000),
        b'{"call": "offline.give_back", "holder": "a"}',
        b'{"call": "hello", "holder": "%s"}' % (b"a" * 129),
    ],
)
def test_what_is_no_call_is_answered_as_such_and_the_next_one_is_made(worker: TakenOver, content: bytes) -> None:
    send_frame(worker.sock, content)
    with pytest.raises(SphynxError, match=r"failed \((ValueError|UnicodeDecodeError|JSONDecodeError)\)"):
        worker.answer()
    worker.call("hello", holder="a")
    assert worker.call("ledger.state", bundle_id=bytes(16)) is None


def test_limits_are_the_owner_s(worker: TakenOver) -> None:
    """Whatever the worker says they are."""
    with pytest.raises(SphynxError, match="failed"):
        worker.call("ledger.expired")  # before it has said in whose name
    worker.call("hello", holder="a")
    first, second = some_entry(), some_entry()
    for entry in (first, second):
        worker.call("ledger.reserve", entries=[entry], most=10**6, hourly=None)
    with pytest.raises(BundleRefusedError, match="may keep 2 bundles"):
        worker.call("ledger.reserve", entries=[some_entry()], most=10**6, hourly=None)
    assert worker.call("offline.try_take", holder=OWNER)
    with pytest.raises(SphynxError, match="busy"):
        worker.call("offline.take", holder=OWNER, wait_s=10**6)  # waits as long as the owner does: 0.01 s


def test_a_place_is_given_back_by_who_holds_it(worker: TakenOver) -> None:
    worker.admission.offline.take("somebody", 0)
    with pytest.raises(SphynxError, match="failed"):
        worker.call("offline.give_back", holder="somebody")
    assert worker.admission.offline.taken == 1
    worker.admission.offline.give_back("somebody")
    worker.call("offline.take", holder="a", wait_s=0)
    worker.call("offline.give_back", holder="a")
    with pytest.raises(SphynxError, match="failed"):
        worker.call("offline.give_back", holder="a")


def test_what_was_burned_stays_burned(worker: TakenOver) -> None:
    """Try every call that the owner answers, in any order."""
    worker.call("hello", holder="a")
    entry = some_entry()
    ready = {
        "bundle_ids": [entry.bundle_id],
        "size_bytes": 1,
        "offline_seconds": 0.0,
        "offline_bytes": 0,
        "keep": False,
    }
    burn = {"bundle_id": entry.bundle_id, "owner": OWNER, "program": entry.program, "hourly": None, "number": None}
    worker.call("ledger.reserve", entries=[entry], most=None, hourly=None)
    worker.call("ledger.make_ready", **ready)
    assert worker.call("ledger.burn", **burn) == 1
    again: tuple[tuple[str, dict[str, Any]], ...] = (
        ("ledger.reserve", {"entries": [entry], "most": None, "hourly": None}),
        ("ledger.make_ready", ready),
        ("ledger.discard", {"bundle_ids": [entry.bundle_id]}),
        ("ledger.fall_in", {"owner": OWNER, "program": entry.program, "burned": 0}),
        ("ledger.give_up", {"holders": ["a"]}),
        ("hello", {"holder": "b"}),
        ("ledger.burn", burn),
    )
    for name, arguments in again:
        try:
            worker.call(name, **arguments)
        except SphynxError:
            assert name in ("ledger.reserve", "ledger.make_ready", "ledger.burn")
        assert worker.ledger.state(entry.bundle_id) == "burned"


@contextmanager
def fleet_with(tmp_path: Path, authority: Path, limits: Limits) -> Iterator[tuple[Fleet, socket.socket]]:
    """An owner, and the control socket of a worker whose process does nothing: the test speaks for it."""
    with Store(tmp_path / "state", quota_bytes=1000) as store, Path(os.devnull).open() as weights:
        settings = ServerSettings(keys=tmp_path, state=tmp_path, limits=limits)
        order = WorkerOrder(tmp_path, settings, weights.fileno(), cores=1, control=0)
        keys = FreshKeys(authority / "server", None, print)
        fleet = Fleet(order, 1, store, PortListener("127.0.0.1", 0), keys, EventLog(io.StringIO()))
        owners, workers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fleet._start(0)
        fleet._workers[0].control.close()
        owners.setblocking(False)
        fleet._workers[0].control = owners
        try:
            with workers:
                yield fleet, workers
        finally:
            fleet.close()


def open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_descriptors_and_threads_of_one_worker_are_bounded(
    tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/true")
    with fleet_with(tmp_path, authority, Limits(connections=2, handshakes=2)) as (fleet, workers):
        before, threads = open_descriptors(), threading.active_count()
        with Path(os.devnull).open() as no_socket:
            for note in (READY, CALL):
                socket.send_fds(workers, [note], [no_socket.fileno()])
        kept = []
        for _ in range(60):
            mine, theirs = socket.socketpair()
            with theirs:
                socket.send_fds(workers, [CALL], [theirs.fileno()])
            kept.append(mine)
            fleet._hear(0)
        served = [sock for sock in kept if len(fleet._workers[0].calls) and not _is_closed(sock)]
        assert len(served) == len(fleet._workers[0].calls) == 24
        assert open_descriptors() == before + 60 + 24 and threading.active_count() - threads <= 24
        for sock in kept:
            sock.close()
        for one in fleet._workers[0].calls:
            assert one.join(20)


def _is_closed(sock: socket.socket) -> bool:
    sock.setblocking(False)
    try:
        return sock.recv(1) == b""
    except BlockingIOError:
        return False


@pytest.mark.parametrize("note", [DONE, b"something else"])
def test_a_worker_that_says_what_cannot_be_is_killed_at_once(
    tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch, note: bytes
) -> None:
    """One that has ended more connections than it was handed over would look idler than any other. This one does not
    end by itself: whoever waited for that would accept nobody meanwhile."""
    program = tmp_path / "stays"
    program.write_text("#!/bin/sh\nexec sleep 600\n")
    program.chmod(0o700)
    monkeypatch.setattr("sys.executable", str(program))
    with fleet_with(tmp_path, authority, Limits()) as (fleet, workers):
        process = fleet._workers[0].process
        monkeypatch.setattr("sphynx.service.fleet._wait_ended", lambda one: one.wait(20))  # kills nothing itself
        workers.send(note)
        fleet._hear(0)
        assert not fleet._workers and process.returncode == -signal.SIGKILL


def test_what_a_worker_had_goes_with_it_and_what_it_counted_stays() -> None:
    metrics = Metrics()
    metrics.add("connections_total", result="done")
    for count in (2, 3):
        part = metrics.new_part()
        part.values = {("connections_total", (("result", "done"),)): count, ("unread_bytes", ()): 1000}
        assert "sphynx_unread_bytes 1000" in metrics.render({})
        part.end()
        part.end()
        part.values = {("connections_total", ()): 99}  # a thread that was late
    assert 'sphynx_connections_total{result="done"} 6\n' in metrics.render({})
    assert "sphynx_unread_bytes 1" not in metrics.render({}) and "99" not in metrics.render({})
    assert METRICS["unread_bytes"][0] == "gauge"
