"""Processes that end while a bundle is made ahead: quietly, without a process aborted or a bundle left half-made."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from sphynx.api import refilling
from sphynx.api.refilling import Refill
from sphynx.errors import ConnectionLostError
from sphynx.service.yielding import Urgent
from tests.service.processes import ROOT, WAIT_S, environment
from tests.service.scene import Scene

# `begun` is set when a bundle is begun; no time is left for it.
BEGINS = """
import sys, threading
import sphynx
from sphynx.api import refilling
from sphynx.service.store import Store
refilling.CLOSE_S, begun, reserve = 0.0, threading.Event(), Store.reserve
def reserve_and_tell(store, entry):
    reserve(store, entry)
    print("begun", flush=True)
    begun.set()
Store.reserve = reserve_and_tell
"""
CLIENT = """
server, keys, state = sys.argv[1:]
client = sphynx.Client(server, keys=keys, state=state, ahead=1, backend="gmw", warn=print)
"""
ENDINGS = {
    "left": "with client: begun.wait()",
    "failed": """
try:
    with client:
        begun.wait()
        raise KeyError
except KeyError:
    pass
""",
    "forgotten": "client.__enter__(); begun.wait()",
}
VERB = """
from sphynx.cli.main import main
server, keys, state = sys.argv[1:]
sys.argv[1:] = ["infer", "--ahead", "1", "--backend", "gmw", "--server", server, "--keys", keys, "--state", state]
main()
"""


def start(scene: Scene, script: str) -> subprocess.Popen[str]:
    server, keys = f"127.0.0.1:{scene.server.port}", str(scene.authority / "alice")
    return subprocess.Popen(
        [sys.executable, "-c", script, server, keys, str(scene.client_state)],
        cwd=ROOT,
        env=environment(scene.server.audit),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_client_may_end_before_its_bundle(scene: Scene, ending: str) -> None:
    scene.server.start()
    with start(scene, BEGINS + CLIENT + ENDINGS[ending]) as process:
        assert process.communicate(timeout=WAIT_S) == ("begun\n", "")
    assert process.returncode == 0
    assert "reserved" not in scene.states(scene.client_state)


def test_the_verb_may_be_interrupted_before_its_bundle(scene: Scene) -> None:
    scene.server.start()
    with start(scene, BEGINS + VERB) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0
    assert said.splitlines() == ["0 bundles are ready for later.", "keeping 1 bundles ready; press Ctrl-C to stop"]
    assert "reserved" not in scene.states(scene.client_state)


class Busy:
    """A client that makes a bundle, or connects, until it is let go."""

    ready_ahead = 0

    def __init__(self, *, connects: bool) -> None:
        self.connects, self.begun, self.let_go, self.closed = connects, threading.Event(), threading.Event(), False

    def prepare_ahead(self, pool: int = 1) -> None:  # noqa: ARG002  # as the protocol has it
        self.begun.set()
        self.let_go.wait()
        raise ConnectionLostError("the connection is lost", where="connection", remedy="Connect again.")

    def close(self) -> None:
        self.closed = True

    def _hang_up(self) -> bool:
        if not self.connects:
            self.let_go.set()
        return not self.connects


@pytest.mark.parametrize("connects", [False, True])
def test_a_bundle_that_takes_long_is_dropped_and_who_connects_not_waited_for(
    monkeypatch: pytest.MonkeyPatch, connects: bool
) -> None:
    monkeypatch.setattr(refilling, "CLOSE_S", 0.0)
    client, told = Busy(connects=connects), list[str]()
    refill = Refill(client, 1, urgent=Urgent(), warn=told.append)
    assert client.begun.wait(WAIT_S)
    refill.close()
    assert client.closed != connects
    client.let_go.set()
    assert refill._worker.join(WAIT_S)
    assert client.closed and not told
