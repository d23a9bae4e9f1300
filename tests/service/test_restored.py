"""Folders that were restored from a copy, at one side or at both: no bundle serves twice, and the others learn why."""

from __future__ import annotations

import io
import json
import logging
import shutil
from pathlib import Path

import pytest

from sphynx import system
from sphynx.errors import BundleRefusedError
from sphynx.service.home import home_of, why_moved
from sphynx.service.ledger import Ledger
from sphynx.service.settings import Limits
from sphynx.service.store import LEDGER, Store
from tests.service.processes import used_twice
from tests.service.scene import Scene
from tests.service.test_limits import PIXELS, serving
from tests.service.tiny import OWNER, put, some_entry, tiny_program

PROGRAM = tiny_program().content_hash
QUOTA = 5000


def copy(folder: Path) -> Path:
    return Path(shutil.copytree(folder, folder.with_name(f"{folder.name}-copy")))


def restore(folder: Path, *, in_place: bool = False) -> None:
    """From the copy: as a backup does it, or into the same files, as nothing on this machine could tell."""
    if not in_place:
        shutil.rmtree(folder)
        shutil.copytree(folder.with_name(f"{folder.name}-copy"), folder)
        return
    for log in folder.glob(f"{LEDGER}-*"):
        log.unlink()
    for kept in folder.with_name(f"{folder.name}-copy").rglob("*"):
        if kept.is_file():
            put_back = folder / kept.relative_to(folder.with_name(f"{folder.name}-copy"))
            put_back.touch(mode=0o600)
            put_back.write_bytes(kept.read_bytes())


def test_both_folders_restored_from_copies(scene: Scene) -> None:
    server = scene.server.start()
    with scene.client() as client:
        client.prepare(2, backend="gmw")
    assert server.stop() == 0
    copy(scene.client_state), copy(server.state)
    server.start()
    done = scene.infer(scene.picture, scene.picture, "--backend", "gmw")
    assert done.returncode == 0 and not done.stderr.count("discarded"), done.stderr
    assert server.stop() == 0
    restore(scene.client_state)
    restore(server.state)
    server.start()
    done = scene.infer(scene.picture, scene.picture, "--backend", "gmw")
    assert done.returncode == 0, done.stderr
    assert "2 bundles were discarded: the ledger is not the file that was made here" in done.stderr
    assert [seen["labels"] for seen in json.loads(done.stdout)["predictions"]] == [scene.expected] * 2
    assert server.stop() == 0
    (logged,) = [line["why"] for line in server.log if line["event"] == "discarded"]
    assert logged.startswith("2 bundles were discarded")
    assert not used_twice(server.audit) and len(server.audit.read_text().splitlines()) == 8


@pytest.fixture
def no_notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine without a file system in memory."""
    monkeypatch.setattr(system, "SHARED_MEMORY", tmp_path / "not there")


@pytest.mark.usefixtures("no_notes")
@pytest.mark.parametrize("behind", ["client", "server"])
def test_whoever_was_restored_to_an_earlier_time_discards_its_bundles(
    tmp_path: Path, authority: Path, behind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Both were, into the same files; all that shows it is that one of them knows of an inference more."""
    log = io.StringIO()
    folders = {"client": tmp_path / "client", "server": tmp_path / "server"}
    ahead = "server" if behind == "client" else "client"

    def infer_once(prepare: int = 0) -> list[bytes]:
        """Infer once; return what is ready afterwards."""
        with serving(tmp_path, authority, Limits(), log) as (client, _), client:
            if prepare:
                client.prepare(prepare, backend="gmw")
            client.infer(PIXELS)
            return [entry.bundle_id for entry in client.ready]

    infer_once(prepare=4)
    copy(folders[behind])
    infer_once()
    copy(folders[ahead])
    (left,) = infer_once()
    for folder in folders.values():
        restore(folder, in_place=True)
    assert not log.getvalue().count('"discarded"')
    with caplog.at_level(logging.WARNING):
        assert not infer_once()
    assert ("3 bundles were discarded" in caplog.text) == (behind == "client")
    assert ('"discarded"' in log.getvalue()) == (behind == "server")
    for folder in folders.values():
        assert Ledger(folder / LEDGER).state(left) == "discarded"
    infer_once()
    assert log.getvalue().count('"discarded"') == (behind == "server")


def test_lost_inferences_are_no_sign_of_a_restored_server(scene: Scene) -> None:
    """The client has burned bundles that the server never heard of."""
    server = scene.server.start()
    with scene.client() as client:
        client.prepare(3, backend="gmw")
        client._store.take(client.ready[0].bundle_id, owner=client._server, program=PROGRAM)
    with scene.client() as client:
        assert len(client.ready) == 2
        client.infer(scene.pixels)
    scene.check_inference()
    assert server.stop() == 0
    assert scene.states(server.state).count("burned") == 2


@pytest.mark.parametrize("trust", [False, True])
def test_a_copied_folder_loses_its_bundles_unless_it_is_trusted(tmp_path: Path, trust: bool) -> None:
    told: list[str] = []
    with Store(tmp_path / "state", quota_bytes=QUOTA) as store:
        put(store, entry := some_entry())
    shutil.copytree(tmp_path / "state", tmp_path / "moved")
    (tmp_path / "state").rename(tmp_path / "renamed")
    with Store(tmp_path / "renamed", quota_bytes=QUOTA, tell=told.append) as store:
        assert len(store.ready()) == 1 and not told  # the same files
    for _attempt in range(2):
        with Store(tmp_path / "moved", quota_bytes=QUOTA, trust=trust, tell=told.append) as store:
            assert len(store.ready()) == trust and len(told) == (not trust)
    if not trust:
        with (
            Store(tmp_path / "moved", quota_bytes=QUOTA) as store,
            pytest.raises(BundleRefusedError, match="discarded"),
        ):
            store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)


def test_a_restart_of_the_machine_costs_the_bundles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    with Store(tmp_path / "state", quota_bytes=QUOTA) as store:
        put(store, some_entry())
    (tmp_path / "boot_id").write_text("another start\n")
    monkeypatch.setattr(system, "BOOT_ID", tmp_path / "boot_id")
    with Store(tmp_path / "state", quota_bytes=QUOTA, tell=told.append) as store:
        assert not store.ready()
        put(store, some_entry())
    with Store(tmp_path / "state", quota_bytes=QUOTA, tell=told.append) as store:
        assert len(store.ready()) == 1
    assert [line for line in told if "the machine was restarted" in line] == told and len(told) == 1


def test_a_file_s_home(tmp_path: Path) -> None:
    (tmp_path / "made").write_text("a")
    made = home_of(tmp_path / "made")
    (tmp_path / "made").write_text("b")
    assert home_of(tmp_path / "made") == made and why_moved(made, made) is None
    shutil.copy2(tmp_path / "made", tmp_path / "copy")
    assert "copied or restored" in (why_moved(made, home_of(tmp_path / "copy")) or "")
    inode, birth, boot = made.split()
    assert int(inode) == (tmp_path / "made").stat().st_ino and boot
    assert birth == "unknown" or abs(float(birth) - (tmp_path / "made").stat().st_ctime) < 60


def test_numbers_of_burns(tmp_path: Path) -> None:
    """The client counts, the server remembers the highest; what is confirmed is kept with the next change."""
    client, server = Ledger(tmp_path / "client"), Ledger(tmp_path / "server")
    for ledger in (client, server):
        ids = [some_entry() for _ in range(3)]
        for entry in ids:
            ledger.reserve(entry)
            ledger.make_ready(entry.bundle_id, size_bytes=1, offline_seconds=0, offline_bytes=0)
        numbers = (None, None) if ledger is client else (9, 4)
        burned = [
            ledger.burn(entry.bundle_id, owner=OWNER, program=PROGRAM, number=number)
            for entry, number in zip(ids, numbers, strict=False)
        ]
        assert burned == ([1, 2] if ledger is client else [9, 9])
    client.confirm(OWNER, PROGRAM, 2)
    client.confirm(OWNER, PROGRAM, 1)
    client.close()
    again = Ledger(tmp_path / "client")
    assert again.confirmed(OWNER) == {PROGRAM: 2} and again.burned(OWNER, PROGRAM) == 2
    assert len(again.fall_in(OWNER, PROGRAM, 9)) == 1
    assert again.burned(OWNER, PROGRAM) == 9 and not again.ready()
    assert server.burned(OWNER, PROGRAM) == 9 and server.burned(OWNER, "another") == 0
