"""Several processes with one client's keys, several servers of one state, several threads with one client."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sphynx.errors import ConnectionLostError, PeerGaveUpError, SphynxError
from sphynx.program.interpret import interpret
from tests.service.asking_process import images
from tests.service.processes import ROOT, WAIT_S, ServerProcess, environment, used_twice
from tests.service.scene import Scene


def ask_at_once(scene: Scene, ports: Sequence[int], keys: Path, times: int) -> None:
    """One process for each port, all with these keys: every answer is right, and no bundle serves twice."""
    assert scene.server.warm is not None
    python = str(scene.server.warm.programs / "python")
    asking = [
        subprocess.Popen(
            [python, "-m", "tests.service.asking_process", str(port), str(keys), str(seed), str(times)],
            cwd=ROOT,
            env=environment(scene.server.audit),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed, port in enumerate(ports)
    ]
    for seed, process in enumerate(asking):
        said, why = process.communicate(timeout=5 * WAIT_S)
        assert process.returncode == 0, why
        pixels = np.stack(list(images(seed, times)))
        assert np.array_equal(
            [json.loads(line) for line in said.splitlines()], interpret(scene.program, scene.weights, pixels)
        )
    assert not used_twice(scene.server.audit)
    used = [line.split() for line in scene.server.audit.read_text().splitlines()]
    for role in ("client", "server"):
        assert sum(found == role for found, _ in used) == times * len(ports)


@pytest.fixture
def keys(tmp_path: Path, authority: Path) -> Path:
    """A client's keys with no bundles beside them yet."""
    return Path(shutil.copytree(authority / "alice", tmp_path / "keys", ignore=shutil.ignore_patterns("bundles")))


@pytest.mark.parametrize(("processes", "times"), [(3, 6), pytest.param(8, 20, marks=pytest.mark.slow)])
def test_processes_with_one_key_folder(processes: int, times: int, scene: Scene, keys: Path) -> None:
    scene.server.flags = ("--timeout", "300")  # all wait for one worker, on a busy machine for long
    ask_at_once(scene, [scene.server.start().port] * processes, keys, times)
    assert scene.server.stop() == 0
    for state in (scene.server.state, keys / "bundles"):
        assert scene.states(state).count("burned") == processes * times


def test_two_servers_share_a_state(scene: Scene, keys: Path) -> None:
    """A bundle that one of them prepared may be used with the other; the clients' processes take both."""
    first = scene.server.start()
    second = ServerProcess(first.compiled, first.keys, first.state, first.audit, warm=first.warm)
    try:
        second.start()
        ask_at_once(scene, [first.port, second.port], keys, 5)
        assert second.stop(signal.SIGKILL) == -signal.SIGKILL
        scene.check_inference()
        assert second.start().stop() == 0
    finally:
        second.stop(signal.SIGKILL)
    assert first.stop() == 0


def test_who_connects_leaves_alone_what_another_process_prepares_or_uses(scene: Scene) -> None:
    """Its half is reserved here and ready there, or burned here and not yet there."""
    server = scene.server.start()
    with scene.client() as preparing:
        preparing.prepare(2, backend="gmw")
        first, second = preparing.ready
        for entry, state in ((first, "reserved"), (second, "burned")):
            preparing._store.ledger._file._base.execute(
                "UPDATE bundles SET state = ?, holder = ? WHERE bundle_id = ?",
                (state, preparing._store._holders.name, entry.bundle_id),
            )
        scene.check_inference()
        assert scene.states(server.state).count("ready") == 2
    with scene.client() as late:  # whoever prepared and used them is gone
        assert not late.ready
        late.infer(scene.pixels)
    assert server.stop() == 0
    assert sorted(scene.states(server.state)) == ["burned", "burned", "discarded", "discarded"]


def test_threads_share_a_client(scene: Scene) -> None:
    scene.server.start()
    with scene.client() as client, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda pixels: client.infer(pixels).integer_logits, images(7, 8)))
    assert np.array_equal(found, interpret(scene.program, scene.weights, np.stack(list(images(7, 8)))))
    assert scene.server.stop() == 0
    assert scene.states(scene.client_state) == ["burned"] * 8


def test_after_a_failure_every_thread_hears_that_the_connection_is_over(scene: Scene) -> None:
    scene.server.start()

    def fail(_number: int) -> None:
        raise RuntimeError("the caller's own")

    with scene.client() as client:
        with pytest.raises(RuntimeError):
            client.prepare(2, backend="gmw", done=fail)
        with pytest.raises((ConnectionLostError, PeerGaveUpError)):
            client.infer(scene.pixels)
    scene.check_inference()


def test_a_forked_process_is_told_to_connect_itself(scene: Scene) -> None:
    scene.server.start()
    with scene.client() as client:
        child = os.fork()
        if not child:
            code = 1
            try:
                client.infer(scene.pixels)
            except SphynxError as error:
                code = 0 if "connected by another process" in error.what else 2
            finally:
                client.__exit__(None, None, None)
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert np.array_equal(client.infer(scene.pixels).integer_logits, scene.logits)
