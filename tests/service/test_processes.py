"""A server of several processes: right answers, limits that hold for all together, and deaths of either kind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import sphynx
from sphynx.errors import ConnectionLostError, PeerGaveUpError, SphynxError
from sphynx.program.interpret import interpret
from sphynx.program.security import SECURITIES, Security
from sphynx.protocol.linear import ServerModel
from sphynx.protocol.shared_weights import read_shared, write_shared
from sphynx.protocol.verify.plan import CheckPlan, plan_security
from sphynx.service import session
from sphynx.service.session import MAX_PING_BYTES, Ping
from tests.program.programs import random_weights
from tests.service.asking_process import images
from tests.service.processes import ROOT, WAIT_S, command, environment, used_twice
from tests.service.scene import Scene
from tests.service.test_floods import BEYOND_KERNEL
from tests.service.test_many_processes import ask_at_once, keys  # noqa: F401 - a fixture
from tests.service.tiny import save_tiny, tiny_program

WORKERS = 2


@pytest.fixture
def fleet(scene: Scene) -> Iterator[Scene]:
    scene.server.flags = ("--processes", str(WORKERS), "--timeout", "120")
    scene.server.start()
    yield scene


def worker_pids(scene: Scene) -> list[int]:
    assert scene.server.process is not None
    children = Path(f"/proc/{scene.server.process.pid}/task/{scene.server.process.pid}/children")
    return [int(pid) for pid in children.read_text().split()]


def eventually(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_answers_bundles_and_metrics_of_all_workers(fleet: Scene, keys: Path) -> None:  # noqa: F811
    assert len(worker_pids(fleet)) == WORKERS
    ask_at_once(fleet, [fleet.server.port] * 4, keys, 5)
    assert fleet.states(fleet.server.state).count("burned") == 20

    def counted(name: str) -> float:
        with urllib.request.urlopen(f"http://127.0.0.1:{fleet.server.metrics_port}/metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"sphynx_{name}"))

    eventually(lambda: counted("inferences_total") == 20)  # workers report every second
    with pytest.raises(ConnectionLostError), fleet.client() as client:
        for _ in range(BEYOND_KERNEL):
            session.send(client._channel, Ping(0, MAX_PING_BYTES))
            client._channel.send(b"")
        eventually(lambda: counted("unread_bytes") > 0)
        client.hang_up()
        client.measure_link()
    eventually(lambda: counted("unread_bytes") == 0)
    assert fleet.server.stop() == 0
    assert {line["worker"] for line in fleet.server.log if line["event"] == "inferred"} == set(range(WORKERS))


def test_limits_hold_for_all_workers_together(scene: Scene) -> None:
    """Bundles that a client may keep, over connections that different workers lead."""
    scene.server.flags = ("--processes", str(WORKERS), "--pool", "3")
    scene.server.start()
    with scene.client() as first, scene.client() as second:
        first.prepare(2, backend="gmw")
        second.prepare(1, backend="gmw")
        with pytest.raises(PeerGaveUpError, match="may keep 3 bundles"):
            second.prepare(1, backend="gmw")
    connected = [line["worker"] for line in scene.server.log if line["event"] == "connected"]
    assert sorted(connected) == [0, 1]


def test_a_worker_that_is_killed_is_replaced_and_its_places_are_free(fleet: Scene) -> None:
    with fleet.client() as client:
        client.prepare(2, backend="gmw")
        (worker,) = {line["worker"] for line in fleet.server.log if line["event"] == "connected"}
        before = worker_pids(fleet)
        for pid in before:
            os.kill(pid, signal.SIGKILL)
        with pytest.raises(ConnectionLostError):
            client.infer(fleet.pixels)
    fleet.server.wait_for("worker_lost")
    eventually(lambda: len(set(worker_pids(fleet)) - set(before)) == WORKERS)
    fleet.check_inference()
    assert fleet.server.stop() == 0
    assert worker in range(WORKERS) and not used_twice(fleet.server.audit)
    assert fleet.states(fleet.client_state).count("burned") == 2  # one for nothing: its worker was gone


def test_workers_end_with_their_owner_and_a_new_one_goes_on(fleet: Scene) -> None:
    with fleet.client() as client:
        client.prepare(2, backend="gmw")
        workers = worker_pids(fleet)
        assert fleet.server.stop(signal.SIGKILL) == -signal.SIGKILL
        eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
        with pytest.raises((ConnectionLostError, PeerGaveUpError)):
            client.infer(fleet.pixels)
    fleet.server.start()
    fleet.check_inference()
    assert fleet.server.stop() == 0
    assert not used_twice(fleet.server.audit)


def test_nothing_is_sent_before_the_owner_has_burned(fleet: Scene) -> None:
    """The owner does not answer, and then it is gone: the worker has not begun, and the bundle is never used."""
    owner = fleet.server.process
    assert owner is not None
    with fleet.client() as patient:
        patient.prepare(1, backend="gmw")
    with fleet.client(timeout_s=3.0) as client:
        os.kill(owner.pid, signal.SIGSTOP)
        with pytest.raises(ConnectionLostError, match="did not answer in time"):
            client.infer(fleet.pixels)
    workers = worker_pids(fleet)
    assert fleet.server.stop(signal.SIGKILL) == -signal.SIGKILL
    eventually(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))
    assert not fleet.server.audit.exists()  # neither worker has begun an inference
    fleet.server.start()
    fleet.check_inference()
    assert fleet.server.stop() == 0
    assert not used_twice(fleet.server.audit) and "ready" not in fleet.states(fleet.server.state)


def test_clients_at_once(fleet: Scene) -> None:
    def ask(seed: int) -> bool:
        pixels = next(images(seed, 1))
        with fleet.client() as client:
            found = client.infer(pixels, backend="gmw" if seed % 2 else "gc").integer_logits
        return np.array_equal(found, interpret(fleet.program, fleet.weights, pixels[None])[0])

    with ThreadPoolExecutor(6) as pool:
        assert all(pool.map(ask, range(12)))
    assert fleet.server.stop() == 0


def test_a_worker_that_is_stopped_gets_no_connections_until_it_goes_on(fleet: Scene) -> None:
    workers = worker_pids(fleet)
    for stopped in workers:
        os.kill(stopped, signal.SIGSTOP)
        fleet.check_inference()  # each in turn: one of them is whom the owner would have chosen
        os.kill(stopped, signal.SIGCONT)
    for stopped in workers:
        os.kill(stopped, signal.SIGSTOP)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(fleet.check_inference)
        eventually(lambda: not is_healthy(fleet))
        os.kill(workers[-1], signal.SIGCONT)
        asking.result()
    os.kill(workers[0], signal.SIGCONT)
    assert fleet.server.stop() == 0


def is_healthy(scene: Scene) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{scene.server.metrics_port}/healthz") as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        return False


@pytest.mark.parametrize("security", SECURITIES)
def test_shared_weights_are_those_of_the_model_and_of_no_other(security: Security, tmp_path: Path) -> None:
    program, weights = save_tiny(tmp_path)
    check = plan_security(security, program, weights)
    model = ServerModel(program, weights, check=check)
    shared = write_shared(model, weights)
    try:
        read = read_shared(shared, program, weights, check=check)
        own, other = bytearray(model.prepared_bytes), bytearray(model.prepared_bytes)
        for into, one in ((own, model), (other, read)):
            at = 0
            for prepared in one.prepared:
                at = prepared.copy_values(into, at)
        assert own == other and any(own)
        with pytest.raises(PermissionError):
            os.pwrite(shared, b"x", 100)
        with pytest.raises(SphynxError, match="other weights"):
            read_shared(shared, program, random_weights(tiny_program(), 1), check=check)
        with pytest.raises(SphynxError, match="other weights"):
            read_shared(shared, program, weights, check=CheckPlan(41, 4))
    finally:
        os.close(shared)


def test_workers_take_no_module_of_the_folder_that_the_server_is_started_in(scene: Scene, tmp_path: Path) -> None:
    """It may be one that others can write to."""
    (tmp_path / "sqlite3.py").write_text("raise SystemExit('a module of somebody else')\n")
    scene.server.flags, scene.server.folder = ("--processes", str(WORKERS)), tmp_path
    scene.server.start()
    scene.check_inference()
    assert scene.server.stop() == 0


def test_a_server_without_stderr_serves(scene: Scene) -> None:
    """As some supervisors start it. The workers had some socket of the owner for their log."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = scene.server.port = free.getsockname()[1]
    where = ("--keys", scene.server.keys, "--state", scene.server.state, "--listen", f"127.0.0.1:{port}")
    started = command("none", "serve", scene.compiled, *where, "--metrics", "127.0.0.1:0", "--processes", str(WORKERS))
    server = subprocess.Popen(
        ["/bin/sh", "-c", 'exec "$@" 2>&-', "sh", *started], cwd=ROOT, env=environment(scene.server.audit)
    )
    try:
        keys_of, state = scene.authority / "alice", scene.client_state
        with sphynx.Client(
            f"127.0.0.1:{port}", keys=keys_of, state=state, wait_s=WAIT_S, warn=lambda _why: None
        ) as client:
            assert np.array_equal(client.infer(scene.pixels).integer_logits, scene.logits)
        server.terminate()
        assert server.wait(WAIT_S) == 0
    finally:
        server.kill()
        server.wait()


def test_the_state_of_one_process_is_that_of_several(scene: Scene) -> None:
    """Bundles outlive a change of the number of processes."""
    scene.server.start()
    with scene.client() as client:
        client.prepare(1, backend="gmw")
    assert scene.server.stop() == 0
    scene.server.flags = ("--processes", "2")
    scene.server.start()
    said = json.loads(scene.infer(scene.picture).stdout)
    assert said["predictions"][0]["labels"] == scene.expected and said["bundles_ready"] == 0
    assert scene.server.stop() == 0
    assert scene.states(scene.server.state) == ["burned"]
