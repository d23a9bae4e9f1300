"""Bundles made ahead by what is idle: places that others leave, work that gives way, clients that refill."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator

import numpy as np
import pytest

import sphynx
from sphynx.api.refilling import Refill
from sphynx.core import available_cores
from sphynx.errors import PeerGaveUpError, RefusedError
from sphynx.protocol.channel import Section, local_pair
from sphynx.service import yielding
from sphynx.service.admission import Admission
from sphynx.service.settings import Limits
from sphynx.service.yielding import GivesWay, Urgent, on_one_core
from tests.service.processes import ROOT, WAIT_S, environment
from tests.service.scene import Scene

AHEAD = 3


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_ahead_gets_what_offline_and_online_leave() -> None:
    admission = Admission(Limits(workers=3))
    assert admission.ahead.try_take("a")
    assert admission.offline.try_take("b") and admission.online.try_take("c")
    assert not admission.ahead.try_take("d")
    for _ in range(2):  # never the other way round: all places of these are free although one is made ahead
        assert admission.offline.try_take("e")
        assert admission.online.try_take("e")
    admission.offline.give_back("b")
    admission.online.give_back("c")
    assert not admission.ahead.try_take("d")
    for places in (admission.offline, admission.online):
        places.give_back("e")
        places.give_back("e")
    assert admission.ahead.try_take("d")


def test_who_waits_for_a_spare_place_gets_it_when_an_inference_ends() -> None:
    admission = Admission(Limits(workers=1))
    admission.online.take("urgent", 0)
    with pytest.raises(RefusedError, match="busy"):
        admission.ahead.take("ahead", 0.01)
    waiting = threading.Thread(target=admission.ahead.take, args=("ahead", WAIT_S))
    waiting.start()
    admission.online.give_back("urgent")
    waiting.join(WAIT_S)
    assert admission.ahead.taken == 1


@pytest.fixture(params=[(), ("--processes", "2")], ids=["one process", "workers"])
def server(scene: Scene, request: pytest.FixtureRequest) -> Iterator[Scene]:
    scene.server.flags = request.param
    scene.server.start()
    yield scene
    assert scene.server.stop() == 0


def ahead_client(scene: Scene) -> sphynx.Client:
    where = f"127.0.0.1:{scene.server.port}"
    return sphynx.Client(where, keys=scene.authority / "alice", state=scene.client_state, ahead=AHEAD, backend="gmw")


def test_a_client_keeps_bundles_ready(server: Scene) -> None:
    with ahead_client(server) as client:
        eventually(lambda: client.ready == AHEAD)
        for _ in range(AHEAD):
            assert np.array_equal(client.infer(server.pixels).integer_logits, server.logits)
        eventually(lambda: client.ready == AHEAD)
    with server.client() as later:
        assert len(later.ready) == AHEAD
    prepared = [line for line in server.server.log if line["event"] == "prepared"]
    assert sum(line["ahead"] for line in prepared) >= AHEAD


class Filled:
    """A client that counts; the first bundle fails, by an error of the operating system. It never hangs up."""

    def __init__(self) -> None:
        self.ready_ahead, self.pools, self.closed = 0, list[int](), False

    def prepare_ahead(self, pool: int = 1) -> None:
        self.pools.append(pool)
        if len(self.pools) == 1:
            raise OSError("no space left")
        self.ready_ahead += 1

    def close(self) -> None:
        self.closed = True

    def _hang_up(self) -> bool:
        raise AssertionError


def test_refilling_outlives_errors_and_tells_them() -> None:
    client, told = Filled(), list[str]()
    refill = Refill(client, AHEAD, urgent=Urgent(), warn=told.append)
    eventually(lambda: client.ready_ahead == AHEAD)
    refill.close()
    assert client.closed and client.pools == [AHEAD, 1, AHEAD, AHEAD]  # one alone after a failure
    assert told == ["bundles cannot be prepared ahead now: no space left"]


def test_what_is_made_ahead_has_a_gauge(server: Scene) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server.metrics_port}/metrics", timeout=WAIT_S) as page:
        assert b"\nsphynx_ahead_running 0\n" in page.read()


class Told(GivesWay):
    def __init__(self, urgent: Urgent) -> None:
        super().__init__(urgent)
        self.reached = threading.Event()

    def received(self, section: Section, payload: bytearray) -> None:
        self.reached.set()
        super().received(section, payload)


def test_what_is_made_ahead_stops_between_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yielding, "MOST_WAIT_S", WAIT_S)
    urgent, order = Urgent(), []
    here, there = local_pair()
    here.observer = told = Told(urgent)

    def receive() -> None:
        order.append(bytes(here.receive(4)))

    with urgent.running(), urgent.running():
        waiting = threading.Thread(target=receive)
        waiting.start()
        there.send(b"next")
        assert told.reached.wait(WAIT_S)
        order.append(b"an inference ends")
    waiting.join(WAIT_S)
    assert order == [b"an inference ends", b"next"]
    for channel in (here, there):
        channel.close()


def test_it_goes_on_where_something_urgent_always_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yielding, "MOST_WAIT_S", 0.01)
    urgent = Urgent()
    with urgent.running():
        urgent.give_way()
        assert urgent.is_running
    assert not urgent.is_running


@pytest.mark.skipif(sys.platform != "linux", reason="threads are held to cores on Linux only")
def test_calls_of_the_core_have_one_core_meanwhile() -> None:
    before = available_cores()
    with on_one_core():
        assert available_cores() == 1
    assert available_cores() == before


def test_limits_hold_for_what_is_made_ahead(scene: Scene) -> None:
    scene.server.flags = ("--pool", "1")
    scene.server.start()
    with scene.client() as client:
        client.prepare(1, backend="gmw", ahead=True)
        with pytest.raises(PeerGaveUpError, match="may keep 1 bundles ready"):
            client.prepare(1, backend="gmw", ahead=True)


# As a shell without job control starts what shall run in the background.
IGNORES_SIGINT = ["sh", "-c", 'trap "" INT; exec "$@"', "sh"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_verb_stays_until_it_is_interrupted(scene: Scene, number: signal.Signals) -> None:
    scene.server.start()
    command = [
        *IGNORES_SIGINT,
        sys.executable,
        "-m",
        "sphynx.cli.main",
        "infer",
        "--ahead",
        str(AHEAD),
        "--backend",
        "gmw",
    ]
    command += ["--server", f"127.0.0.1:{scene.server.port}", "--keys", str(scene.authority / "alice")]
    process = subprocess.Popen(
        [*command, "--state", str(scene.client_state)],
        cwd=ROOT,
        env=environment(scene.server.audit),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for _ in range(AHEAD):
            scene.server.wait_for("prepared", ahead=True)
        with scene.client() as other:  # another process's, as far as the folder can tell
            assert np.array_equal(other.infer(scene.pixels).integer_logits, scene.logits)
        scene.server.wait_for("prepared", ahead=True)
        process.send_signal(number)
        _, said = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
    assert process.returncode == 0 and "keeping 3 bundles ready" in said
