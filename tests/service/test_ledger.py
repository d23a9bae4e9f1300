"""The ledger: a bundle is burned once, whatever the order of calls, the number of threads, crashes and restarts."""

from __future__ import annotations

import os
import resource
import signal
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sphynx.errors import BundleRefusedError, DiskError, InputError
from sphynx.service.ledger import KEEP_SPENT_S, Ledger
from tests.service.tiny import OWNER, put, some_entry, tiny_program

PROGRAM = tiny_program().content_hash
ROOT = Path(__file__).parents[2]


def ready_entry(ledger: Ledger, **changes: object) -> bytes:
    entry = some_entry(**changes)  # type: ignore[arg-type]
    ledger.reserve(entry)
    ledger.make_ready(entry.bundle_id, size_bytes=10, offline_seconds=0.5, offline_bytes=20)
    return entry.bundle_id


def test_a_bundle_is_burned_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    bundle_id = ready_entry(ledger)
    assert [entry.bundle_id for entry in ledger.ready(owner=OWNER, program=PROGRAM)] == [bundle_id]
    ledger.burn(bundle_id, owner=OWNER, program=PROGRAM)
    with pytest.raises(BundleRefusedError, match="used before"):
        ledger.burn(bundle_id, owner=OWNER, program=PROGRAM)
    ledger.close()
    with pytest.raises(BundleRefusedError, match="used before"):
        Ledger(tmp_path / "ledger").burn(bundle_id, owner=OWNER, program=PROGRAM)


def test_a_limit_holds_for_preparations_at_the_same_time(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ready_entry(ledger)

    def is_reserved(_number: int) -> bool:
        try:
            ledger.reserve(some_entry(), most=3)
        except BundleRefusedError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(is_reserved, range(8))) == 2
    ledger.reserve(some_entry(owner="somebody else"), most=3)


def test_a_limit_holds_for_inferences_at_the_same_time(tmp_path: Path) -> None:
    """Connections that were all admitted while one of them held the worker once had four times the images."""
    now = [1e9]
    ledger = Ledger(tmp_path / "ledger", clock=lambda: now[0])
    ids = [ready_entry(ledger) for _ in range(8)]

    def is_burned(bundle_id: bytes) -> bool:
        try:
            ledger.burn(bundle_id, owner=OWNER, program=PROGRAM, hourly=3)
        except BundleRefusedError as error:
            assert "3 images inferred per hour" in error.what
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(is_burned, ids)) == 3
    (left, *_) = ledger.ready(owner=OWNER)
    now[0] += 3601
    ledger.burn(left.bundle_id, owner=OWNER, program=PROGRAM, hourly=1)


def test_a_limit_holds_for_what_is_begun_at_the_same_time(tmp_path: Path) -> None:
    now = [1e9]
    ledger = Ledger(tmp_path / "ledger", clock=lambda: now[0])
    made_before = ready_entry(ledger)
    now[0] += 3601
    ledger.burn(made_before, owner=OWNER, program=PROGRAM)

    def is_begun(_number: int) -> bool:
        entry = some_entry()
        try:
            ledger.reserve(entry, hourly=3)
        except BundleRefusedError as error:
            assert "prepare for 3 images per hour" in error.what
            return False
        ledger.discard(entry.bundle_id)  # dropping it gives nothing back
        return True

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(is_begun, range(8))) == 3
    assert (ledger.begun_images(OWNER), ledger.begun_images("somebody else")) == (3, 0)
    ledger.reserve(some_entry(owner="somebody else"), hourly=1)
    now[0] += 3601
    ledger.reserve(some_entry(), hourly=1)


def test_a_clock_that_was_ahead_shuts_nobody_out(tmp_path: Path) -> None:
    """Rows of a clock that was ahead counted until that time came, and a client was refused for as long."""
    now = [1e9 + 1e7]
    ledger = Ledger(tmp_path / "ledger", clock=lambda: now[0])
    ledger.burn(ready_entry(ledger, expires_at=2e9), owner=OWNER, program=PROGRAM, hourly=1)
    now[0] = 1e9
    assert ledger.begun_images(OWNER) == 0
    entry = some_entry()
    ledger.reserve(entry, hourly=1)
    ledger.make_ready(entry.bundle_id, size_bytes=10, offline_seconds=0.5, offline_bytes=20)
    ledger.burn(entry.bundle_id, owner=OWNER, program=PROGRAM, hourly=1)
    now[0] -= 5  # as a clock is set that was a little fast
    with pytest.raises(BundleRefusedError, match="per hour"):
        ledger.reserve(some_entry(), hourly=1)
    with pytest.raises(BundleRefusedError, match="per hour"):
        ledger.burn(ready_entry(ledger), owner=OWNER, program=PROGRAM, hourly=1)


def test_a_refusal_counts_nobody_else_s_images(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ledger.burn(ready_entry(ledger, owner="somebody else"), owner="somebody else", program=PROGRAM)
    ledger.burn(ready_entry(ledger), owner=OWNER, program=PROGRAM, hourly=1)


def test_only_its_owner_and_program_may_burn_it_and_only_in_time(tmp_path: Path) -> None:
    now = [1000.0]
    ledger = Ledger(tmp_path / "ledger", lambda: now[0])
    bundle_id = ready_entry(ledger, expires_at=2000.0)
    with pytest.raises(BundleRefusedError, match="none with this identifier"):
        ledger.burn(bundle_id, owner="somebody", program=PROGRAM)
    with pytest.raises(BundleRefusedError, match="another program"):
        ledger.burn(bundle_id, owner=OWNER, program="another")
    with pytest.raises(BundleRefusedError, match="none with this identifier"):
        ledger.burn(os.urandom(16), owner=OWNER, program=PROGRAM)
    now[0] = 2000.0
    assert not ledger.ready() and [entry.bundle_id for entry in ledger.expired()] == [bundle_id]
    with pytest.raises(BundleRefusedError, match="expired"):
        ledger.burn(bundle_id, owner=OWNER, program=PROGRAM)


def test_an_identifier_is_taken_once(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    entry = some_entry()
    ledger.reserve(entry)
    with pytest.raises(BundleRefusedError, match="not ready"):
        ledger.burn(entry.bundle_id, owner=OWNER, program=PROGRAM)
    ledger.discard(entry.bundle_id)
    with pytest.raises(BundleRefusedError, match="not being prepared"):
        ledger.make_ready(entry.bundle_id, size_bytes=0, offline_seconds=0, offline_bytes=0)
    with pytest.raises(BundleRefusedError, match="used before"):
        ledger.reserve(entry)
    with pytest.raises(BundleRefusedError, match="discarded"):
        ledger.burn(entry.bundle_id, owner=OWNER, program=PROGRAM)


def test_many_threads_and_connections_burn_it_once(tmp_path: Path) -> None:
    ledgers = [Ledger(tmp_path / "ledger") for _ in range(3)]
    ids = [ready_entry(ledgers[0]) for _ in range(5)]

    def try_to_burn(number: int) -> int:
        won = 0
        for bundle_id in ids:
            try:
                ledgers[number % 3].burn(bundle_id, owner=OWNER, program=PROGRAM)
                won += 1
            except BundleRefusedError:
                pass
        return won

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(try_to_burn, range(6))) == len(ids)


BURNS_ELSEWHERE = """
import sys
from pathlib import Path
from sphynx.errors import BundleRefusedError
from sphynx.service.ledger import Ledger

path, owner, program, *ids = sys.argv[1:]
ledger = Ledger(Path(path))
for bundle_id in ids:
    try:
        ledger.burn(bytes.fromhex(bundle_id), owner=owner, program=program)
        print("burned")
    except BundleRefusedError as error:
        print(error.what)
ledger.close()
"""


def burn_elsewhere(path: Path, *ids: bytes) -> list[str]:
    """Burn in another process, which opens the ledger and closes it again."""
    command = [sys.executable, "-c", BURNS_ELSEWHERE, str(path), OWNER, PROGRAM, *(one.hex() for one in ids)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


def test_a_process_with_two_ledgers_and_another_that_comes_and_goes_burn_it_once(tmp_path: Path) -> None:
    """As a client that refills has them. Opening the second once gave up the locks of the first: whoever left last took
    itself for the only one and deleted the log, and from then on each side burned in a ledger of its own."""
    path = tmp_path / "ledger"
    ledgers = [Ledger(path) for _ in range(2)]
    theirs, ours = ready_entry(ledgers[0]), ready_entry(ledgers[0])
    assert burn_elsewhere(path, theirs) == ["burned"]
    ledgers[0].burn(ours, owner=OWNER, program=PROGRAM)
    assert burn_elsewhere(path, theirs, ours) == ["it was used before"] * 2
    for ledger in ledgers:
        assert (ledger.state(theirs), ledger.state(ours)) == ("burned", "burned")


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from(["burn", "discard", "ready", "reopen"]), st.integers(0, 2)), max_size=12))
def test_no_history_burns_twice(tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, int]]) -> None:
    path = tmp_path_factory.mktemp("history") / "ledger"
    ledger = Ledger(path)
    entries = [some_entry() for _ in range(3)]
    burned: list[int] = []
    for entry in entries:
        ledger.reserve(entry)
    for action, number in history:
        bundle_id = entries[number].bundle_id
        try:
            if action == "burn":
                ledger.burn(bundle_id, owner=OWNER, program=PROGRAM)
                burned.append(number)
            elif action == "discard":
                ledger.discard(bundle_id)
            elif action == "ready":
                ledger.make_ready(bundle_id, size_bytes=1, offline_seconds=0, offline_bytes=0)
            else:
                ledger.close()
                ledger = Ledger(path)
        except BundleRefusedError:
            pass
    assert len(burned) == len(set(burned))
    assert {number for number in range(3) if ledger.state(entries[number].bundle_id) == "burned"} == set(burned)
    ledger.close()


def test_commits_reach_the_disk_and_the_file_is_private(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    assert ledger._file._base.execute("PRAGMA synchronous").fetchone() == (2,)  # FULL: a commit waits for the disk
    assert ledger._file._base.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


def test_old_rows_go_and_what_was_being_prepared_is_given_up(tmp_path: Path) -> None:
    now = [1e9]
    ledger = Ledger(tmp_path / "ledger", lambda: now[0])
    burned, ready = ready_entry(ledger), ready_entry(ledger)
    reserved = some_entry()
    ledger.reserve(reserved)
    ledger.burn(burned, owner=OWNER, program=PROGRAM)
    ledger.clean()
    assert [ledger.state(name) for name in (burned, ready, reserved.bundle_id)] == ["burned", "ready", "reserved"]
    assert ledger.give_up(ledger.preparing()) == [reserved.bundle_id]
    assert [ledger.state(name) for name in (burned, ready, reserved.bundle_id)] == ["burned", "ready", "discarded"]
    now[0] += KEEP_SPENT_S + 1
    ledger.clean()
    assert [ledger.state(name) for name in (burned, ready, reserved.bundle_id)] == [None, "ready", None]


def test_no_request_reads_through_what_is_spent(tmp_path: Path) -> None:
    """Counted in steps of SQLite's machine: a client's months of inferences must not slow everybody's next one."""
    ledger = Ledger(tmp_path / "ledger")
    entry = some_entry()
    columns = "bundle_id, owner, program, backend, batch, state, expires_at, size_bytes, changed_at"
    spent = f"INSERT INTO bundles ({columns}) VALUES (?, ?, ?, 'gc', 1, 'burned', 2e9, 10, 1.0)"

    def steps() -> int:
        counted = [0]

        def count() -> int:
            counted[0] += 1
            return 0

        ledger._file._base.set_progress_handler(count, 1)
        ledger.reserve(entry, most=9, hourly=9)
        ledger.begun_images(OWNER)
        ledger.make_ready(entry.bundle_id, size_bytes=10, offline_seconds=0.5, offline_bytes=20)
        ledger.usual_bytes(PROGRAM, "gc", 1)
        ledger.expired()
        ledger.kept_bytes(OWNER)
        for owner, program in ((OWNER, PROGRAM), (OWNER, None), (None, None)):
            assert len(ledger.ready(owner=owner, program=program)) == 1
        ledger.burn(entry.bundle_id, owner=OWNER, program=PROGRAM, hourly=9)
        ledger._file._base.set_progress_handler(None, 1)
        ledger._file._base.execute("DELETE FROM bundles WHERE bundle_id = ?", (entry.bundle_id,))
        return counted[0]

    few = steps()
    rows = [(os.urandom(16), owner, PROGRAM) for owner in (OWNER, "somebody else") for _ in range(1000)]
    ledger._file._base.executemany(spent, rows)
    assert steps() < few + 100


def test_an_older_ledger_gets_the_later_columns_and_the_indices(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    bundle_id = ready_entry(ledger)
    names = {row[0] for row in ledger._file.select("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE INDEX%'")}
    for name in names:
        ledger._file._base.execute(f"DROP INDEX {name}")
    for column in ("reserved_at", "holder"):
        ledger._file._base.execute(f"ALTER TABLE bundles DROP COLUMN {column}")
    ledger._file._base.execute("PRAGMA user_version = 1")
    ledger.close()
    again = Ledger(tmp_path / "ledger")
    found = {row[0] for row in again._file.select("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE INDEX%'")}
    assert found == names and [entry.bundle_id for entry in again.ready()] == [bundle_id]
    again.reserve(some_entry(), hourly=1)  # when the older one was begun is not known: it does not count
    again.burn(bundle_id, owner=OWNER, program=PROGRAM, hourly=1)


def test_a_file_that_is_damaged_while_it_is_used_says_so(tmp_path: Path) -> None:
    """Not as an error of SQLite's: a client would show its user a traceback, a server would call itself failed."""
    ledger = Ledger(tmp_path / "ledger")
    for _ in range(100):
        ledger.reserve(some_entry())
    ledger._file._base.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with (tmp_path / "ledger").open("r+b") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(4096)  # the first page says where the tables are
        file.write(os.urandom(size - 4096))
    ledger._file._base.execute("PRAGMA shrink_memory")  # forgets the pages as they were
    for use in (ledger.ready, ledger.preparing, lambda: ledger.reserve(some_entry())):
        with pytest.raises(DiskError, match="damaged") as refused:
            use()
        assert "Move the whole folder away" in refused.value.remedy
    ledger.close()


def test_damaged_text_is_damage(tmp_path: Path) -> None:
    """Python cannot decode it, and says so before it says what SQLite found."""
    for name, (written, damaged), error in (
        ("schema", (b"home (mark", b"home \xd4mark"), InputError),
        ("row", (OWNER.encode(), b"\xd4" * len(OWNER)), DiskError),
    ):
        ledger = Ledger(tmp_path / name)
        bundle_id = some_entry().bundle_id
        ledger.reserve(some_entry(bundle_id))
        ledger.make_ready(bundle_id, size_bytes=1, offline_seconds=1, offline_bytes=1)
        ledger.close()
        raw = (tmp_path / name).read_bytes()
        assert written in raw
        (tmp_path / name).write_bytes(raw.replace(written, damaged))
        with pytest.raises(error) as refused:
            Ledger(tmp_path / name).ready()
        assert "Move the whole folder away" in refused.value.remedy


def test_a_damaged_or_newer_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "damaged").write_bytes(os.urandom(5000))
    with pytest.raises(InputError, match="cannot be used"):
        Ledger(tmp_path / "damaged")
    Ledger(tmp_path / "newer").close()
    with sqlite3.connect(tmp_path / "newer") as base:
        base.execute("PRAGMA user_version = 9")
    with pytest.raises(InputError, match="version 9"):
        Ledger(tmp_path / "newer")


def test_a_file_that_cannot_be_opened_now_is_not_called_damaged(tmp_path: Path) -> None:
    """Whoever has no file descriptor left was advised to move the folder away, with all bundles."""
    ledger = Ledger(tmp_path / "ledger")
    bundle_id = ready_entry(ledger)
    ledger.close()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        for name in ("ledger", "new"):
            with pytest.raises(DiskError) as refused:
                Ledger(tmp_path / name)
            assert "Move" not in refused.value.remedy
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    Ledger(tmp_path / "ledger").burn(bundle_id, owner=OWNER, program=PROGRAM)


TAKE_AND_DIE = """
import os, signal, sys
from pathlib import Path
from sphynx.service import store as module
from tests.service.tiny import OWNER, tiny_program

folder, bundle_id, moment = Path(sys.argv[1]), bytes.fromhex(sys.argv[2]), sys.argv[3]
def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)
if moment == "before the burn":
    module.Ledger.burn = die
if moment == "before the file goes":
    Path.unlink = die
store = module.Store(folder, quota_bytes=1 << 20)
store.take(bundle_id, owner=OWNER, program=tiny_program().content_hash)
die()
"""


@pytest.mark.parametrize(
    ("moment", "usable"), [("before the burn", True), ("before the file goes", False), ("before the use", False)]
)
def test_kill_9_around_the_burn(tmp_path: Path, moment: str, usable: bool) -> None:
    from sphynx.service.store import Store

    entry = some_entry()
    with Store(tmp_path, quota_bytes=1 << 20) as store:
        put(store, entry)
    done = subprocess.run(
        [sys.executable, "-c", TAKE_AND_DIE, str(tmp_path), entry.bundle_id.hex(), moment], cwd=ROOT, check=False
    )
    assert done.returncode == -signal.SIGKILL
    with Store(tmp_path, quota_bytes=1 << 20) as store:
        assert store.ledger.state(entry.bundle_id) == ("ready" if usable else "burned")
        assert store.used_bytes > 0 if usable else store.used_bytes == 0
        if usable:
            store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
        with pytest.raises(BundleRefusedError, match="used before"):
            store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
