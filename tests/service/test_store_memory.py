"""Bundles that a store keeps in memory: which ones, how many, and that none stays when it is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sphynx.errors import BundleRefusedError
from sphynx.protocol.bundle import Bundle, load_bundle
from sphynx.service.ledger import Entry
from sphynx.service.store import BUNDLES, Store
from tests.service.tiny import OWNER, put, some_bundle, some_entry, tiny_program

PROGRAM = tiny_program().content_hash
QUOTA = 5000


def test_a_bundle_in_memory_is_burned_like_any_other(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        first, second = some_entry(), some_entry()
        for entry in (first, second):
            put(store, entry)
            store.preload(entry.bundle_id)
        assert len(store.ready()) == 2
        for entry in (first, second):
            assert store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)[0].bundle_id == entry.bundle_id
            with pytest.raises(BundleRefusedError, match="used before"):
                store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
        assert store.used_bytes == 0


def test_a_new_bundle_is_not_read_back(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        first, second = some_entry(), some_entry()
        put(store, first)
        put(store, second)
        for path in (tmp_path / BUNDLES).iterdir():
            path.write_bytes(b"only the second is read")
        assert store.take(first.bundle_id, owner=OWNER, program=PROGRAM)[0].bundle_id == first.bundle_id
        with pytest.raises(BundleRefusedError):
            store.take(second.bundle_id, owner=OWNER, program=PROGRAM)


def test_new_bundles_of_many_clients_stay_in_memory_up_to_a_limit(tmp_path: Path) -> None:
    entries = [some_entry(owner=f"{number:064x}") for number in range(4)]
    size_bytes = some_bundle(entries[0]).bytes

    def is_read(entry: Entry) -> bool:
        try:
            return store.take(entry.bundle_id, owner=entry.owner, program=PROGRAM)[0].bundle_id != entry.bundle_id
        except BundleRefusedError:
            return True

    with Store(tmp_path, quota_bytes=QUOTA, memory_bytes=3 * size_bytes) as store:
        for entry in entries:
            put(store, entry)
        for path in (tmp_path / BUNDLES).iterdir():
            path.write_bytes(b"not a bundle")
        assert [is_read(entry) for entry in entries] == [False, False, False, True]
        assert all(store.ledger.state(entry.bundle_id) == "burned" for entry in entries)
        large, small = some_entry(), some_entry()
        put(store, large, 350)  # there is room again, for one of any size
        put(store, small)
        for path in (tmp_path / BUNDLES).iterdir():
            path.write_bytes(b"not a bundle")
        assert [is_read(entry) for entry in (large, small)] == [False, True]


def test_one_that_is_asked_for_takes_the_place_of_others(tmp_path: Path) -> None:
    first, second, third = entries = [some_entry() for _ in range(3)]
    with Store(tmp_path, quota_bytes=QUOTA, memory_bytes=2 * some_bundle(first).bytes) as store:
        for entry in entries:
            put(store, entry)
        store.preload(third.bundle_id)
        for path in (tmp_path / BUNDLES).iterdir():
            path.write_bytes(b"not a bundle")
        for entry in (third, first):
            store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
        with pytest.raises(BundleRefusedError):
            store.take(second.bundle_id, owner=OWNER, program=PROGRAM)


def test_a_bundle_that_is_taken_at_once_does_not_stay_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread takes it as soon as the ledger has it ready and before `put` is over."""
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        first, second = some_entry(), some_entry()
        make_ready = store.ledger.make_ready

        def make_ready_and_take(bundle_id: bytes, **facts: Any) -> None:
            make_ready(bundle_id, **facts)
            monkeypatch.undo()
            store.take(bundle_id, owner=OWNER, program=PROGRAM)

        monkeypatch.setattr(store.ledger, "make_ready", make_ready_and_take)
        put(store, first)
        put(store, second)
        (tmp_path / BUNDLES / second.bundle_id.hex()).write_bytes(b"not read: the second is at hand")
        assert store.take(second.bundle_id, owner=OWNER, program=PROGRAM)[0].bundle_id == second.bundle_id


@pytest.mark.parametrize("end", ["take", "discard"])
@pytest.mark.parametrize("ledger_knows", [True, False])
def test_a_bundle_that_is_spent_while_it_is_preloaded_does_not_stay_in_memory(
    end: str, ledger_knows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread spends it. What stayed would keep later ones out of memory, and its secrets in it."""
    first, second, third = (some_entry() for _ in range(3))

    def spend() -> None:
        if end == "take":
            store.take(second.bundle_id, owner=OWNER, program=PROGRAM)
        else:
            store.discard(second.bundle_id)

    def read_then_spend(path: Path) -> Bundle:
        bundle = load_bundle(path)
        monkeypatch.undo()
        spend()
        return bundle

    with Store(tmp_path, quota_bytes=QUOTA) as store:
        put(store, first)
        put(store, second)  # not at hand: the first is
        change = {"take": "burn", "discard": "discard"}[end]
        written = getattr(store.ledger, change)

        read_before = load_bundle(tmp_path / BUNDLES / second.bundle_id.hex())

        def preload_then_write(*arguments: Any, **facts: Any) -> None:
            monkeypatch.setattr("sphynx.service.store.load_bundle", lambda _path: read_before)
            store.preload(second.bundle_id)
            written(*arguments, **facts)

        if ledger_knows:  # before what was read is kept
            monkeypatch.setattr("sphynx.service.store.load_bundle", read_then_spend)
            store.preload(second.bundle_id)
        else:
            monkeypatch.setattr(store.ledger, change, preload_then_write)
            spend()
            monkeypatch.undo()
        store.take(first.bundle_id, owner=OWNER, program=PROGRAM)
        put(store, third)
        (tmp_path / BUNDLES / third.bundle_id.hex()).write_bytes(b"not read: the third is at hand")
        assert store.take(third.bundle_id, owner=OWNER, program=PROGRAM)[0].bundle_id == third.bundle_id


def test_a_discarded_bundle_is_not_at_hand(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        entry = some_entry()
        put(store, entry)
        store.discard(entry.bundle_id)
        with pytest.raises(BundleRefusedError):
            store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)


def test_memory_is_not_kept_for_what_another_process_used(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as first, Store(tmp_path, quota_bytes=QUOTA) as second:
        used, later = some_entry(), some_entry()
        put(first, used)
        second.take(used.bundle_id, owner=OWNER, program=PROGRAM)
        put(first, later)
        (tmp_path / BUNDLES / later.bundle_id.hex()).write_bytes(b"not read: it is at hand")
        first.take(later.bundle_id, owner=OWNER, program=PROGRAM)
