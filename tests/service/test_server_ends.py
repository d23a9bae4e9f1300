"""Processes of servers that end: by their own reason while a bundle is made, quietly; or by a signal alone."""

from __future__ import annotations

import json
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sphynx.service import session
from sphynx.service.process import ServerOrder
from sphynx.service.session import Prepare
from sphynx.service.settings import ServerSettings
from tests.service.processes import ROOT, WAIT_S, environment
from tests.service.scene import Scene

SERVER = """
import os, signal, sys, threading
import sphynx
from sphynx.service.store import Store
signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored here
begun, reserve = threading.Event(), Store.reserve
def reserve_and_tell(*given, **limits):
    reserve(*given, **limits)
    begun.set()
Store.reserve = reserve_and_tell
class Log:
    def write(self, line):
        if "stopping" in line and "twice" in sys.argv:
            os.kill(os.getpid(), signal.SIGINT)
    def flush(self):
        pass
compiled, keys, state, *_ = sys.argv[1:]
server = sphynx.Server(compiled, keys=keys, listen="127.0.0.1:0", state=state, log=Log()).start()
print(server.port, flush=True)
begun.wait()
"""
ENDINGS = {
    "end": ("", 0, ""),
    "error": ("raise KeyError", 1, "KeyError"),
    "interrupt": ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT, "KeyboardInterrupt"),
    "twice": ("server.stop()", -signal.SIGINT, "KeyboardInterrupt"),  # while it waits for the client
}


def begun(scene: Scene, program: str, *words: str) -> subprocess.Popen[str]:
    folders = (scene.compiled, scene.authority / "server", scene.server.state)
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, folders), *words],
        cwd=ROOT,
        env=environment(scene.server.audit),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_process_may_end_before_its_server(scene: Scene, ending: str) -> None:
    how, code, last_line = ENDINGS[ending]
    with begun(scene, SERVER + how, ending) as process:
        assert process.stdout is not None
        scene.server.port = int(process.stdout.readline())
        with scene.client() as client:
            session.send(client._channel, Prepare(1, "gmw", 1, secrets.token_hex(16)))  # and no more: it waits
            _, said = process.communicate(timeout=WAIT_S)
    assert process.returncode == code
    assert said.splitlines()[-1:] == ([last_line] if last_line else [])
    assert scene.states(scene.server.state) == ["discarded"]


FLEET = """
import sys
import sphynx
compiled, keys, state = sys.argv[1:]
server = sphynx.Server(compiled, keys=keys, listen="127.0.0.1:0", state=state, processes=2).start()
print(server.port, *server._hosted.server.pids, flush=True)
sys.stdin.readline()
"""


def test_workers_end_with_a_process_that_did_not_stop_its_server(scene: Scene) -> None:
    with begun(scene, FLEET) as process:
        assert process.stdout is not None
        scene.server.port, *workers = map(int, process.stdout.readline().split())
        with scene.client():  # a conversation that would last
            process.communicate("end\n", timeout=WAIT_S)
    assert process.returncode == 0 and len(workers) == 2
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]


def test_a_server_without_a_standard_input_waits_for_the_signal(scene: Scene) -> None:
    settings = ServerSettings(keys=scene.authority / "server", listen="127.0.0.1:0", state=scene.server.state)
    order = json.dumps(ServerOrder(scene.compiled, settings).to_json())
    words = [sys.executable, "-P", "-m", "sphynx.service.process", order]
    with subprocess.Popen(
        ["sh", "-c", 'exec "$@" <&-', "sh", *words],
        cwd=ROOT,
        env=environment(scene.server.audit),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            scene.server.port = json.loads(process.stderr.readline())["port"]
            scene.check_inference()
            process.terminate()
            _, said = process.communicate(timeout=WAIT_S)
        finally:
            process.kill()
    assert process.returncode == 0
    assert [json.loads(line)["event"] for line in said.splitlines()][-1] == "stopped"
