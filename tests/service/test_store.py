"""The store: quota, expiry, orphans, several processes, and no way to a bundle but by burning it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import numpy as np
import pytest

from sphynx.errors import BundleGoneError, BundleRefusedError, InputError, ShareUsedUpError, SphynxError, StoreFullError
from sphynx.service.store import BUNDLES, LEDGER, Store
from tests.service.tiny import OWNER, put, some_bundle, some_entry, tiny_program

PROGRAM = tiny_program().content_hash
QUOTA = 5000


def test_a_bundle_comes_back_once_and_survives_a_restart(tmp_path: Path) -> None:
    entry = some_entry()
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        put(store, entry)
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        (found,) = store.ready(owner=OWNER, program=PROGRAM)
        assert (found.offline_seconds, found.offline_bytes) == (1.5, 7)
        bundle, _ = store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
        assert np.array_equal(bundle.arrays["share/first"], np.arange(100))
        assert store.used_bytes == 0 and not store.ready()
        with pytest.raises(BundleRefusedError, match="used before"):
            store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)


def test_the_file_of_a_taken_bundle_goes_when_its_inference_is_over(tmp_path: Path) -> None:
    """Freeing it would take time from the inference; it is of no more use meanwhile."""
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        entry = some_entry()
        put(store, entry)
        store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
        assert [path.name for path in (tmp_path / BUNDLES).iterdir()] == [entry.bundle_id.hex()]
        store.delete_spent()
        assert store.used_bytes == 0  # waits for the deletion
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        put(store, entry := some_entry())
        store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
    assert not list((tmp_path / BUNDLES).iterdir())


def test_folders_and_files_are_private(tmp_path: Path) -> None:
    with Store(tmp_path / "a" / "b", quota_bytes=QUOTA) as store:
        put(store, some_entry())
        for path in (tmp_path / "a" / "b", *(tmp_path / "a" / "b").rglob("*")):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


def test_stores_share_a_folder_and_each_bundle_serves_one_of_them(tmp_path: Path) -> None:
    entries = [some_entry() for _ in range(6)]
    with ExitStack() as opened:
        stores = [opened.enter_context(Store(tmp_path, quota_bytes=2 * QUOTA)) for _ in range(3)]
        for number, entry in enumerate(entries):
            put(stores[number % 3], entry)

        def taken(store: Store) -> int:
            count = 0
            for entry in entries:
                with suppress(BundleRefusedError):
                    store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
                    count += 1
            return count

        with ThreadPoolExecutor(3) as pool:
            assert sum(pool.map(taken, stores)) == len(entries)
        assert not stores[0].ready()


def test_who_comes_leaves_alone_what_others_prepare_and_sweeps_what_the_dead_left(tmp_path: Path) -> None:
    unsaved, saved, dead = some_entry(), some_entry(), some_entry()
    with Store(tmp_path, quota_bytes=QUOTA) as first:
        for entry in (unsaved, saved):
            first.reserve(entry)
        some_bundle(saved).save(tmp_path / BUNDLES / saved.bundle_id.hex())
        half_written = tmp_path / BUNDLES / f"{unsaved.bundle_id.hex()}.new"
        half_written.touch()
        with Store(tmp_path, quota_bytes=QUOTA) as second:
            second.reserve(dead)
            second.reserve(some_entry(), most=4)
            with pytest.raises(BundleRefusedError, match="may keep 4"):
                first.reserve(some_entry(), most=4)
        assert half_written.exists() and first.ledger.state(saved.bundle_id) == "reserved"
        first.reserve(some_entry(), most=3)  # those of the second no longer count
        assert first.ledger.state(dead.bundle_id) == "discarded"
        put(first, some_entry())
        assert first.alive([unsaved.bundle_id, saved.bundle_id, dead.bundle_id]) == {
            unsaved.bundle_id,
            saved.bundle_id,
        }
    with Store(tmp_path, quota_bytes=QUOTA) as third:
        assert len(list((tmp_path / BUNDLES).iterdir())) == len(third.ready()) == 1


def test_a_bundle_that_one_process_keeps_is_not_chosen_by_others(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as second, Store(tmp_path, quota_bytes=QUOTA) as first:
        common, kept = some_entry(expires_at=1.9e9), some_entry()
        put(first, common)
        put(first, kept)
        first.preload(kept.bundle_id)

        def free(store: Store) -> list[bytes]:
            return [entry.bundle_id for entry in store.free(owner=OWNER, program=PROGRAM)]

        assert free(first) == [kept.bundle_id, common.bundle_id] and free(second) == [common.bundle_id]
        first.take(kept.bundle_id, owner=OWNER, program=PROGRAM)
        with pytest.raises(BundleGoneError, match="not ready"):
            second.preload(kept.bundle_id)
        first.preload(common.bundle_id)
        assert second.alive([kept.bundle_id]) == {kept.bundle_id}  # its inference may be under way
        assert not free(second)
    with Store(tmp_path, quota_bytes=QUOTA) as third:
        assert free(third) == [common.bundle_id] and not third.alive([kept.bundle_id])


def test_other_weights_wait_until_nobody_uses_the_folder(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA, weights_hash="a") as store:
        put(store, some_entry())
        with pytest.raises(InputError, match="with different weights"):
            Store(tmp_path, quota_bytes=QUOTA, weights_hash="b")
        Store(tmp_path, quota_bytes=QUOTA, weights_hash="a").close()
        assert len(store.ready()) == 1
    with Store(tmp_path, quota_bytes=QUOTA, weights_hash="b") as store:
        assert not store.ready()


def test_weights_are_not_served_again_with_less_security(tmp_path: Path) -> None:
    """Bundles made otherwise are discarded; who trusts clients needs another folder, or other weights."""
    with Store(tmp_path, quota_bytes=QUOTA, weights_hash="a") as store:
        put(store, some_entry())
        with pytest.raises(InputError, match="another security"):
            Store(tmp_path, quota_bytes=QUOTA, weights_hash="a", check_plan="strict")
    for check_plan in ("strict", "stricter"):
        with Store(tmp_path, quota_bytes=QUOTA, weights_hash="a", check_plan=check_plan) as store:
            assert not store.ready()
            put(store, some_entry())
    with pytest.raises(InputError, match="any client could read them"):
        Store(tmp_path, quota_bytes=QUOTA, weights_hash="a")
    with Store(tmp_path, quota_bytes=QUOTA, weights_hash="a", check_plan="stricter") as store:
        assert len(store.ready()) == 1
    with Store(tmp_path, quota_bytes=QUOTA, weights_hash="b") as store:
        assert not store.ready()


def test_an_unusable_ledger_does_not_keep_the_folder_locked(tmp_path: Path) -> None:
    makers: tuple[Callable[[Path], object], ...] = (Path.mkdir, lambda path: path.write_bytes(b"not a data base" * 100))
    for make in makers:
        folder = tmp_path / os.urandom(4).hex()
        folder.mkdir()
        make(folder / LEDGER)
        for _attempt in range(2):
            with pytest.raises(SphynxError, match=r"it cannot be (used|written)"):
                Store(folder, quota_bytes=QUOTA)


def test_the_quota_holds_and_expired_bundles_make_room(tmp_path: Path) -> None:
    now = [1000.0]
    with Store(tmp_path, quota_bytes=QUOTA, clock=lambda: now[0]) as store:
        short, long = some_entry(expires_at=2000.0), some_entry(expires_at=3000.0)
        put(store, short, 200)
        put(store, long, 200)
        with pytest.raises(StoreFullError):
            store.check_room(1, owner=OWNER, program=PROGRAM, backend="gc", batch=1)
        refused = some_entry(expires_at=3000.0)
        with pytest.raises(StoreFullError):
            put(store, refused, 300)
        assert store.ledger.state(refused.bundle_id) == "discarded"
        assert len(list((tmp_path / BUNDLES).iterdir())) == 2
        now[0] = 2500.0
        store.check_room(1, owner=OWNER, program=PROGRAM, backend="gc", batch=1)
        with pytest.raises(StoreFullError):
            store.check_room(2, owner=OWNER, program=PROGRAM, backend="gc", batch=1)
        put(store, some_entry(expires_at=4000.0), 200)
        assert store.ledger.state(short.bundle_id) == "discarded"
        assert len(store.ready()) == 2


def test_an_owner_leaves_others_as_much_room_as_it_takes(tmp_path: Path) -> None:
    """However many put at the same time."""
    with Store(tmp_path / "sample", quota_bytes=QUOTA) as store:
        put(store, some_entry())
        size_bytes = store.used_bytes

    def is_kept(owner: str) -> bool:
        try:
            put(store, some_entry(owner=owner))
        except ShareUsedUpError:
            return False
        except StoreFullError:  # its own one has come meanwhile, and is the last that fits
            assert owner == "fifth"
            return False
        return True

    with Store(tmp_path / "shared", quota_bytes=12 * size_bytes, shared=True) as store, ThreadPoolExecutor(4) as pool:
        # 6 of 12, then 3 of the 6 that are left, then 1 of 3 (2 would leave 1), and one more for whoever has none
        for owner, share in (("first", 6), ("second", 3), ("third", 1), ("fourth", 1), ("fifth", 1)):
            assert sum(pool.map(is_kept, [owner] * 8)) == share, owner
            if owner == "first":
                store.check_room(3, owner="second", program=PROGRAM, backend="gc", batch=1)
                with pytest.raises(ShareUsedUpError):
                    store.check_room(4, owner="second", program=PROGRAM, backend="gc", batch=1)
        with pytest.raises(StoreFullError):
            put(store, some_entry(owner="sixth"))
        assert store.used_bytes == store.ledger.kept_bytes("first") * 2


def test_orphans_are_swept_on_both_sides_of_the_ledger(tmp_path: Path) -> None:
    kept, lost = some_entry(), some_entry()
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        put(store, kept)
        put(store, lost)
    (tmp_path / BUNDLES / lost.bundle_id.hex()).unlink()
    (tmp_path / BUNDLES / "cafe.new").write_bytes(b"half a bundle")
    stranger = some_entry()
    some_bundle(stranger).save(tmp_path / BUNDLES / stranger.bundle_id.hex())
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        assert [path.name for path in (tmp_path / BUNDLES).iterdir()] == [kept.bundle_id.hex()]
        assert [entry.bundle_id for entry in store.ready()] == [kept.bundle_id]
        with pytest.raises(BundleRefusedError):
            store.take(stranger.bundle_id, owner=OWNER, program=PROGRAM)


def test_a_bundle_of_somebody_else_stays_untouched(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        entry = some_entry()
        put(store, entry)
        with pytest.raises(BundleRefusedError, match="none with this identifier"):
            store.take(entry.bundle_id, owner="other", program=PROGRAM)
        store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
