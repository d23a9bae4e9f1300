"""A client whose oblivious transfers are not consistent: what the server does with it and with its bundles; strikes."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Event

import pytest

from sphynx.errors import DiskError, InputError, PeerGaveUpError, RefusedError
from sphynx.service import keys
from sphynx.service.strikes import FILE, ROOM_BYTES, Strikes
from tests.protocol.flipping_receiver import FlippingReceiver, flipping
from tests.service.authority import make_authority
from tests.service.scene import Scene
from tests.warm_process import Warm


def fail_a_check(scene: Scene, monkeypatch: pytest.MonkeyPatch, *, ready: int = 0) -> None:
    """Prepare `ready` bundles, then one with an inconsistent extension, all on one connection."""
    with monkeypatch.context() as patched, scene.client() as client:
        receiver = flipping(patched, flips={0: 0})
        client.prepare(1 + ready, backend="gc")  # the first sets up
        made: FlippingReceiver = receiver()
        made.start = made.done
        before = Strikes(scene.server.state / FILE).count("alice")
        with pytest.raises(PeerGaveUpError) as told:
            client.prepare(1, backend="gc")
        assert Strikes(scene.server.state / FILE).count("alice") == before + 1  # by the time that it is told
    assert told.value.what == "the peer's extension of oblivious transfers is not consistent"


def test_all_that_the_client_has_ready_is_burned(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not another client's. A connection that is open ends at its next request, and a new one has a new offset."""
    scene.server.start()
    with scene.client("bob") as other:
        other.prepare(1, backend="gc")
        with scene.client() as client:
            client.prepare(1, backend="gmw")
            fail_a_check(scene, monkeypatch, ready=1)
            with pytest.raises(PeerGaveUpError, match="another connection of this client failed a check"):
                client.prepare(1, backend="gmw")
        with scene.client() as client:
            assert not client.ready
            client.prepare(1, backend="gc")
            assert (client.infer(scene.pixels).integer_logits == scene.logits).all()
        assert len(other.ready) == 1
        assert (other.infer(scene.pixels).integer_logits == scene.logits).all()
    assert scene.server.stop() == 0
    assert scene.states(scene.server.state).count("discarded") == 4


@pytest.mark.parametrize("processes", ["1", "2"])
def test_three_strikes_close_a_client_out(
    processes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm: Warm
) -> None:
    """Strikes outlast a killed server and new keys of the same name, and are not another client's."""
    authority = make_authority(tmp_path / "keys")
    scene = Scene(tmp_path, authority, warm)
    scene.server.flags = ("--processes", processes)
    try:
        scene.server.start()
        fail_a_check(scene, monkeypatch)
        scene.server.stop(signal.SIGKILL)
        scene.server.start()
        fail_a_check(scene, monkeypatch)
        with scene.client() as open_already:
            open_already.prepare(1, backend="gc")
            fail_a_check(scene, monkeypatch)
            with pytest.raises(PeerGaveUpError, match="failed 3 checks and is locked out"):
                open_already.prepare(1, backend="gc")
        scene.server.stop(signal.SIGKILL)
        keys.revoke(authority, "alice")
        shutil.rmtree(authority / "alice")
        keys.issue(authority, "alice")
        shutil.copy(authority / "alice" / "revoked.pem", authority / "server" / "revoked.pem")
        scene.server.start()
        with pytest.raises(PeerGaveUpError, match="locked out"):
            scene.client().__enter__()
        with scene.client("bob") as client:
            assert (client.infer(scene.pixels).integer_logits == scene.logits).all()
    finally:
        scene.server.stop(signal.SIGKILL)


@pytest.mark.parametrize("backend", ["gc", "gmw"])
def test_who_hangs_up_gets_no_strike(backend: str, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of an extension; with gmw also in that of its set-up."""
    scene.server.start()
    for extensions in (1,) if backend == "gc" else (1, 2):
        with monkeypatch.context() as patched, scene.client() as client:
            flipping(patched)

            def leave(made: FlippingReceiver, *_: object, most: int = extensions) -> None:
                made.done += 1
                if made.done == most:
                    raise KeyboardInterrupt

            patched.setattr(FlippingReceiver, "_flip", leave)
            with pytest.raises(KeyboardInterrupt):
                client.prepare(1, backend=backend)  # type: ignore[arg-type]
    scene.check_inference()
    assert scene.server.stop() == 0
    assert (scene.server.state / FILE).read_bytes() == b""


def test_servers_share_a_list(tmp_path: Path) -> None:
    one, other = (Strikes(tmp_path / "strikes", clock=lambda: 1.5) for _ in range(2))
    assert [server.add("alice", "why") for server in (one, other, one)] == [1, 2, 3]
    with pytest.raises(RefusedError, match="locked out"):
        other.check("alice")
    other.check("bob")
    assert (tmp_path / "strikes").read_text() == 3 * '{"client": "alice", "at": 1.5, "why": "why"}\n'
    assert (tmp_path / "strikes").stat().st_mode & 0o777 == 0o600


def test_verdicts_are_found_one_at_a_time(tmp_path: Path) -> None:
    """Also by servers that share the file. After a strike of one, those of connections that began before are void."""
    one, other = (Strikes(tmp_path / "strikes") for _ in range(2))
    is_inside, may_go_on = Event(), Event()

    def strike() -> None:
        with one.judging("alice", known=0):
            is_inside.set()
            assert may_go_on.wait(30)
            one.add("alice", "why")

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(strike)
        assert is_inside.wait(30)
        second = pool.submit(other.judging("alice", known=0).__enter__)
        with pytest.raises(TimeoutError):
            second.result(0.1)  # it waits for the first, whose verdict comes before its own
        may_go_on.set()
        first.result()
        with pytest.raises(RefusedError, match="another connection of this client failed a check"):
            second.result()
    with other.judging("alice", known=1), pytest.raises(RefusedError), other.judging("alice", known=0):
        pass  # a thread that is inside is not kept out by itself
    (tmp_path / "strikes").unlink()
    with pytest.raises(RefusedError, match="cannot be read"), one.judging("bob", known=0):
        pass


def test_no_verdict_is_found_while_a_strike_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes would not know of it, and a restart would forget it."""

    def fill(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    strikes = Strikes(tmp_path / "strikes")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fill)
        with pytest.raises(DiskError), strikes.judging("alice", known=0):
            strikes.add("alice", "why")
        with pytest.raises(RefusedError, match="cannot be read or written"), strikes.judging("bob", known=0):
            pass
    with strikes.judging("bob", known=0):
        assert Strikes(tmp_path / "strikes").count("alice") >= 1


@contextmanager
def on_a_full_disk(size_bytes: int) -> Iterator[None]:
    """Let no file grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_verdict_needs_room_for_a_strike(tmp_path: Path) -> None:
    """On a full disk each process would count strikes for itself: no verdict is found there."""
    path = tmp_path / "strikes"
    one, other = (Strikes(path) for _ in range(2))
    one.add("alice", "why")
    before = path.read_bytes()
    with on_a_full_disk(len(before)):
        for server in (one, other):
            with pytest.raises(RefusedError, match="cannot be read or written"), server.judging("alice", known=1):
                pytest.fail("a verdict is found")
    assert path.read_bytes() == before
    with one.judging("alice", known=1), on_a_full_disk(path.stat().st_size):
        assert one.add("alice", "why") == 2
    assert path.read_bytes().count(b"\n") == 2 and other.count("alice") == 2


def test_room_that_a_killed_server_kept_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "strikes"
    strikes = Strikes(path)
    for left in (b"", b'{"client": "alice"}\n', b'{"client": "alice"}\n{"client": "bo'):
        path.write_bytes(left + b"\n" * ROOM_BYTES)
        with strikes.judging("bob", known=0):
            assert strikes.count("alice") == left.count(b"alice")
        assert strikes.count("alice") == left.count(b"alice") and path.stat().st_size <= len(left) + 1


def test_a_line_that_was_cut_short_is_none_and_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "strikes"
    path.write_text('{"client": "alice"}\n[]\nnonsense\n{"client": "alice"')
    strikes = Strikes(path)
    assert strikes.count("alice") == 1
    assert strikes.add("alice", "why") == 2
    assert Strikes(path).count("alice") == 2


def test_without_the_list_nobody_is_served(tmp_path: Path) -> None:
    strikes = Strikes(tmp_path / "strikes")
    (tmp_path / "strikes").unlink()
    with pytest.raises(RefusedError, match="cannot be read"):
        strikes.check("bob")
    with pytest.raises(DiskError):
        strikes.add("alice", "why")
    os.close(os.open(tmp_path / "strikes", os.O_CREAT | os.O_RDWR, 0o600))
    assert strikes.count("alice") == 1  # kept until it can be written
    assert strikes.add("alice", "why") == 2
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be used"):
        Strikes(tmp_path / "folder")
