"""Older states that were put back into the same files, at both parties: the note outside the folder shows it."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from sphynx import system
from sphynx.errors import BundleGoneError
from sphynx.service import waterline
from sphynx.service.settings import Limits
from sphynx.service.store import LEDGER, Store
from tests.service.test_limits import PIXELS, serving
from tests.service.test_restored import PROGRAM, QUOTA, copy, restore
from tests.service.tiny import OWNER, put, some_entry


@pytest.fixture(autouse=True)
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands for /dev/shm, which not every machine has."""
    folder = tmp_path / "memory"
    folder.mkdir()
    monkeypatch.setattr(system, "SHARED_MEMORY", folder)
    monkeypatch.delenv(waterline.RUNTIME_VARIABLE, raising=False)
    return folder


def burn_one(store: Store) -> bytes:
    entry = store.ready()[0]
    store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
    return entry.bundle_id


@pytest.mark.parametrize("trust", [False, True])
def test_an_older_state_in_the_same_files_is_seen_by_the_note_outside(tmp_path: Path, trust: bool) -> None:
    told: list[str] = []
    with Store(tmp_path / "state", quota_bytes=QUOTA) as store:
        for _ in range(2):
            put(store, some_entry())
    copy(tmp_path / "state")
    with Store(tmp_path / "state", quota_bytes=QUOTA, tell=told.append) as store:
        used = burn_one(store)
    assert not told
    restore(tmp_path / "state", in_place=True)
    with Store(tmp_path / "state", quota_bytes=QUOTA, tell=told.append, trust=trust) as store:
        assert not store.ready() and store.ledger.state(used) == "discarded"  # whoever trusts it: it is known better
        put(store, some_entry())
        burn_one(store)
        put(store, some_entry())
    assert told == ["2 bundles were discarded: an older state of the folder was put back"]
    with Store(tmp_path / "state", quota_bytes=QUOTA, tell=told.append) as store:
        assert len(store.ready()) == 1 and len(told) == 1


def test_both_folders_restored_into_the_same_files_to_the_same_time(tmp_path: Path, authority: Path) -> None:
    """Nothing that they tell each other shows it."""
    log = io.StringIO()

    def infer_once(prepare: int = 0) -> tuple[set[bytes], set[bytes]]:
        """Infer once; return what is ready before and afterwards."""
        with serving(tmp_path, authority, Limits(), log) as (client, _), client:
            if prepare:
                client.prepare(prepare, backend="gmw")
            before = {entry.bundle_id for entry in client.ready}
            client.infer(PIXELS)
            return before, {entry.bundle_id for entry in client.ready}

    before, kept = infer_once(prepare=3)
    assert len(before) == 3 and len(kept) == 2
    for folder in ("client", "server"):
        copy(tmp_path / folder)
    assert infer_once()[0] == kept
    for folder in ("client", "server"):
        restore(tmp_path / folder, in_place=True)
    assert infer_once() == (set(), set())  # one is prepared for it


def test_an_older_state_that_is_put_back_while_the_ledger_is_in_use(tmp_path: Path) -> None:
    """Put it back by SQLite's own means, as `.restore` does it."""
    with Store(tmp_path / "state", quota_bytes=QUOTA) as store:
        for _ in range(2):
            put(store, some_entry())
        with (
            contextlib.closing(sqlite3.connect(tmp_path / "copy")) as kept,
            contextlib.closing(sqlite3.connect(tmp_path / "state" / LEDGER)) as live,
        ):
            live.backup(kept)
            burn_one(store)
            kept.backup(live)
        left, _ = store.ready()
        for _attempt in range(2):
            with pytest.raises(BundleGoneError, match=r"an older state .* was put back|was discarded"):
                store.take(left.bundle_id, owner=OWNER, program=PROGRAM)
        assert not store.ready()
        put(store, some_entry())
        burn_one(store)


def test_a_note_that_is_gone_costs_the_bundles_once_unless_they_are_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def opened(trust: bool = False) -> int:
        with Store(tmp_path / "state", quota_bytes=QUOTA, tell=told.append, trust=trust) as store:
            found = len(store.ready())
            if not found:
                put(store, some_entry())
            return found

    for place in ("one", "another", "a third"):
        (tmp_path / place).mkdir()
        monkeypatch.setattr(system, "SHARED_MEMORY", tmp_path / place)
        assert opened(trust=place == "a third") == (place == "a third")
        assert opened() == 1
    assert len(told) == 1 and "the note" in told[0]
    monkeypatch.setattr(system, "SHARED_MEMORY", tmp_path / "not there")
    assert opened() == 0 and len(told) == 2
    assert opened() == 1


def test_notes_are_kept_from_others_and_swept_up(tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = memory / f"sphynx-{os.geteuid()}"
    for name in ("first", "second"):
        with Store(tmp_path / name, quota_bytes=QUOTA) as store:
            put(store, some_entry())
            burn_one(store)
        (note,) = notes.iterdir()
        assert note.read_text() == f"{1:020d} {tmp_path / name / LEDGER}\n"
        assert notes.stat().st_mode & 0o077 == 0 and note.stat().st_mode & 0o077 == 0
        shutil.rmtree(tmp_path / name)
        os.utime(note, (0, 0))
    notes.chmod(0o755)  # somebody else may have put something there
    assert not waterline.Waterline("a", tmp_path / "ledger").is_kept
    monkeypatch.setenv("RUNTIME_DIRECTORY", f"{tmp_path}:/somewhere/else")
    assert waterline.Waterline("a", tmp_path / "ledger").is_kept and (tmp_path / "sphynx" / "a").exists()


def test_a_folder_is_moved_while_another_ledger_is_opened(tmp_path: Path) -> None:
    told: list[str] = []
    with Store(tmp_path / "state", quota_bytes=QUOTA) as store:
        put(store, some_entry())
    (tmp_path / "state").rename(tmp_path / "renamed")
    with Store(tmp_path / "another", quota_bytes=QUOTA):
        pass
    with Store(tmp_path / "renamed", quota_bytes=QUOTA, tell=told.append) as store:
        assert len(store.ready()) == 1 and not told


def test_the_highest_of_several_processes_is_noted(tmp_path: Path, memory: Path) -> None:
    (tmp_path / "ledger").touch()
    one, other = (waterline.Waterline("a", tmp_path / "ledger") for _ in range(2))
    assert one.level() is None
    one.raise_to(7)
    other.raise_to(5)
    assert one.level() == other.level() == 7
    (memory / f"sphynx-{os.geteuid()}" / "a").write_text("")  # whoever noted it remembers
    assert one.level() == 7 and other.level() == 5
    for line in (one, other):
        line.close()
