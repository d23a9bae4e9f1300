"""`sphynx serve --security malicious-client`, with a real server process over TLS: honest clients are answered as
always, clients that cheat get a strike and nothing else, and the server does not fall back to another mode."""

from __future__ import annotations

import io
import signal
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sphynx.errors import InputError, PeerGaveUpError
from sphynx.program.interpret import interpret
from sphynx.program.ir import INPUT
from sphynx.protocol.verify import parties
from sphynx.protocol.verify.linear_check import hash_of_sums
from sphynx.service import session
from sphynx.service.session import Prepare
from sphynx.service.settings import Limits
from sphynx.service.store import Store
from sphynx.service.strikes import FILE, MOST, Strikes
from tests.protocol.verify.cheats import answer, ask, commit, upload
from tests.service.processes import WAIT_S, command, environment
from tests.service.scene import Scene
from tests.service.test_limits import serving

OFFLINE = {"share": commit("relu", 0, lambda _: 2**17), "upload": upload(INPUT)}
ONLINE = {"pixel": ask(2**19), "colour": answer(forges=False, layers=1), "label": answer(forges=True, layers=1)}
SLOW = [pytest.param(cheat, marks=pytest.mark.slow) for cheat in ("share", "upload", "colour", "label")]
FLAGS = ("--security", "malicious-client")


@pytest.fixture
def checked(scene: Scene) -> Iterator[Scene]:
    scene.server.flags = FLAGS
    scene.server.start()
    yield scene


def deceive(cheat: str, patched: pytest.MonkeyPatch) -> None:
    """Change the client's software, which runs in this process; the server's is another."""
    {**OFFLINE, **ONLINE}[cheat](patched, np.random.default_rng())


def strikes(scene: Scene) -> int:
    return Strikes(scene.server.state / FILE).count("alice")


@pytest.mark.parametrize("processes", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_honest_clients_get_the_oracles_answers(processes: str, scene: Scene) -> None:
    """A bundle, a group of them, and a batch, some used after the server was killed."""
    scene.server.flags = (*FLAGS, "--processes", processes)
    scene.server.start()
    images = np.random.default_rng(1).integers(0, 256, (3, 1, 4, 4), np.uint8)
    oracle = interpret(scene.program, scene.weights, images)
    with scene.client(security="malicious-client") as client:
        assert client.security == "malicious-client"
        group = client._party.most_together(1)
        assert group > 1 and client.prepare(group) == "gc"
        assert np.array_equal(client.infer(images[0]).integer_logits, oracle[0])
    scene.server.stop(signal.SIGKILL)
    scene.server.start()
    with scene.client() as client:  # one that demands nothing is told
        assert client.security == "malicious-client" and len(client.ready) == group - 1
        assert np.array_equal(client.infer(images[1]).integer_logits, oracle[1])
        assert client.prepare(1) == "gc"
        assert np.array_equal([answer.integer_logits for answer in client.infer_batch(images)], oracle)
    assert scene.server.stop() == 0
    assert strikes(scene) == 0


@pytest.mark.parametrize("cheat", ["pixel", *SLOW])
def test_who_cheats_gets_a_strike_and_no_logits(cheat: str, checked: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """The strike is on the disk when it is told, and stays there. What it had ready is burned, on whichever connection
    it was made, in whatever phase it failed."""
    with checked.client() as client:
        client.prepare(2)
    with checked.client() as client:
        if cheat in ONLINE:
            client.prepare(1)
        with monkeypatch.context() as patched, pytest.raises(PeerGaveUpError) as told:
            deceive(cheat, patched)
            client.prepare(1) if cheat in OFFLINE else client.infer(checked.pixels)
        assert strikes(checked) == 1
    phase = "numbers" if cheat in OFFLINE else "labels or pixels"
    assert told.value.what == f"the client's {phase} failed the check"
    checked.server.stop(signal.SIGKILL)
    assert not any(line["event"] == "inferred" for line in checked.server.log)
    assert "ready" not in checked.states(checked.server.state)
    checked.server.start()
    assert strikes(checked) == 1
    with checked.client() as client:
        assert not client.ready
    checked.check_inference()  # it may try again, twice


@pytest.mark.slow
def test_three_strikes_close_a_client_out(checked: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    for cheat in ("share", "colour", "share"):
        with monkeypatch.context() as patched, checked.client() as client, pytest.raises(PeerGaveUpError):
            deceive(cheat, patched)
            client.infer(checked.pixels)
        checked.server.stop(signal.SIGKILL)
        checked.server.start()
    with pytest.raises(PeerGaveUpError, match="failed 3 checks and is locked out"):
        checked.client().__enter__()
    assert strikes(checked) == MOST


@pytest.mark.parametrize("processes", ["1", pytest.param("2", marks=pytest.mark.slow)])
def test_verdicts_at_the_same_time_are_void_but_for_one(
    processes: str, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections of one client that all cheat: one is told that it failed, the others that another one did."""
    scene.server.flags = (*FLAGS, "--processes", processes, "--workers", "9")
    scene.server.start()
    together = threading.Barrier(8)

    def lie_together(*arguments: Any) -> bytes:
        together.wait(WAIT_S)
        return hash_of_sums(*arguments)[::-1]

    def fail(_: int) -> str:
        with scene.client() as client, pytest.raises(PeerGaveUpError) as told:
            client.prepare(1)
        return told.value.what

    monkeypatch.setattr(parties, "hash_of_sums", lie_together)
    with ThreadPoolExecutor(together.parties) as pool:
        heard = sorted(pool.map(fail, range(together.parties)))
    void = ["another connection of this client failed a check"] * (together.parties - 1)
    assert heard == [*void, "the client's numbers failed the check"]
    assert strikes(scene) == 1


def test_a_bundle_that_is_ready_after_a_strike_is_burned(
    tmp_path: Path, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another connection failed a check while this one prepared, and burned what was ready then."""
    make_ready = Store.make_ready

    def make_ready_late(self: Store, *written: Any, **more: Any) -> None:
        if threading.current_thread() is not threading.main_thread():  # the server's
            Strikes(tmp_path / "strikes").add("alice", "why")
        make_ready(self, *written, **more)

    monkeypatch.setattr(Store, "make_ready", make_ready_late)
    with serving(tmp_path, authority, Limits(), io.StringIO()) as (client, server), client:
        with pytest.raises(PeerGaveUpError, match="another connection of this client failed a check"):
            client.prepare(1, backend="gc")
        assert not server._stores[0].ready()


def start_refused(scene: Scene, *flags: str | Path) -> str:
    """`sphynx serve` that does not start: what it says."""
    where = ("--keys", scene.authority / "server", "--state", scene.server.state, "--listen", "127.0.0.1:0")
    ended = subprocess.run(
        command("none", "serve", scene.compiled, *where, *flags),
        env=environment(scene.server.audit),
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    assert ended.returncode == 2
    return ended.stderr


@pytest.mark.slow
def test_the_mode_is_not_given_up(scene: Scene) -> None:
    """Bundles made without it are burned; without it the same weights are not served again from this folder."""
    scene.server.start()
    with scene.client() as client:
        assert client.security == "semi-honest"
        client.prepare(2, backend="gc")
    with pytest.raises(PeerGaveUpError, match="offers the security semi-honest, less than malicious-client"):
        scene.client(security="malicious-client").__enter__()
    assert "another process uses these bundles" in start_refused(scene, *FLAGS)
    assert scene.server.stop() == 0
    scene.server.flags = FLAGS
    scene.server.start()
    with scene.client(security="malicious-client") as client:
        assert not client.ready
        client.prepare(1)
    assert scene.server.stop() == 0
    assert scene.states(scene.server.state) == ["discarded", "discarded", "ready"]
    told = start_refused(scene)
    assert "any client could read them" in told and "--security malicious-client" in told
    scene.server.start()
    scene.check_inference()
    scene.use_weights(seed=1)  # those were not served before
    scene.server.stop()
    scene.server.flags = ()
    scene.server.start()
    scene.check_inference()


def test_a_client_that_asks_for_less_is_refused_and_not_struck(checked: Scene) -> None:
    for asked, why in (
        ({"backend": "gmw"}, "gmw shares are not authenticated"),
        ({"check": ""}, "the client prepares for another"),
        ({"check": "malicious-client ring 40 functionals 1"}, "the client prepares for another"),
    ):
        with checked.client() as client:
            given: dict[str, Any] = {"backend": "gc", "check": str(client._agreement.check), **asked}
            session.send(client._channel, Prepare(1, batch=1, nonce=session.new_nonce(), **given))
            with pytest.raises(PeerGaveUpError, match=why):
                session.expect(client._channel, session.Go)
    with checked.client() as client, pytest.raises(InputError, match="needs garbled circuits"):
        client.infer(checked.pixels, backend="gmw")  # it asks no server for that
    checked.check_inference()
    assert strikes(checked) == 0
