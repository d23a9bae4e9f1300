"""The store: quota, expiry, orphans, several processes, and no way to a bundle but by burning it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sphynx.errors import BundleGoneError, BundleRefusedError, InputError, ShareUsedUpError, SphynxError, StoreFullError
from sphynx.program.interpret import interpret
from sphynx.protocol.bundle import Bundle, load_bundle
from sphynx.service.ledger import Entry
from sphynx.service.local import running_server
from sphynx.service.store import BUNDLES, LEDGER, Store
from tests.program.foreign_kinds import FOREIGN_KINDS, change_kind
from tests.service.tiny import OWNER, put, save_tiny, some_bundle, some_entry, tiny_program

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


def test_memory_is_not_kept_for_what_another_process_used(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as first, Store(tmp_path, quota_bytes=QUOTA) as second:
        used, later = some_entry(), some_entry()
        put(first, used)
        second.take(used.bundle_id, owner=OWNER, program=PROGRAM)
        put(first, later)
        (tmp_path / BUNDLES / later.bundle_id.hex()).write_bytes(b"not read: it is at hand")
        first.take(later.bundle_id, owner=OWNER, program=PROGRAM)


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


def test_a_damaged_or_swapped_file_is_refused_and_spent(tmp_path: Path) -> None:
    damaged, swapped, other = some_entry(), some_entry(), some_entry()
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        for entry in (damaged, swapped):
            put(store, entry)
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        (tmp_path / BUNDLES / damaged.bundle_id.hex()).write_bytes(os.urandom(900))
        some_bundle(other).save(tmp_path / BUNDLES / swapped.bundle_id.hex())
        for entry, why in ((damaged, "damaged"), (swapped, "a different bundle")):
            with pytest.raises(BundleRefusedError, match=why):
                store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
            assert store.ledger.state(entry.bundle_id) == "burned"
        assert store.used_bytes == 0


def test_a_bundle_of_another_version_is_spent_and_the_next_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken, preloaded = some_entry(), some_entry()
    with monkeypatch.context() as before, Store(tmp_path, quota_bytes=QUOTA) as store:
        before.setattr("sphynx.protocol.bundle.FORMAT", "sphynx-bundle/1")
        for entry in (taken, preloaded):
            put(store, entry)
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        with pytest.raises(BundleGoneError):  # which a client does not tell of: it takes another
            store.take(taken.bundle_id, owner=OWNER, program=PROGRAM)
        with pytest.raises(BundleGoneError):
            store.preload(preloaded.bundle_id)
        assert store.used_bytes == 0 and not store.ready()


def test_a_client_goes_on_with_new_bundles_after_an_update(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, weights = save_tiny(tmp_path / "compiled")
    image = np.zeros(program.image, np.uint8)
    expected = interpret(program, weights, image[None])[0]
    with running_server(tmp_path / "compiled", tmp_path) as server:
        with monkeypatch.context() as before, server.client() as client:
            before.setattr("sphynx.protocol.bundle.FORMAT", "sphynx-bundle/1")
            client.prepare(2)
        with server.client() as client:
            assert len(client.ready) == 2
            assert np.array_equal(client.infer(image).integer_logits, expected)
            assert not client.ready


def test_a_bundle_of_somebody_else_stays_untouched(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        entry = some_entry()
        put(store, entry)
        with pytest.raises(BundleRefusedError, match="none with this identifier"):
            store.take(entry.bundle_id, owner="other", program=PROGRAM)
        store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)


@pytest.mark.parametrize("kind", FOREIGN_KINDS)
def test_a_file_of_kinds_that_numpy_does_not_have_is_refused_and_spent(kind: str, tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        entry = some_entry()
        put(store, entry)
    file = tmp_path / BUNDLES / entry.bundle_id.hex()
    change_kind(file, kind)
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        with pytest.raises(BundleRefusedError, match=f"numbers of an unexpected type \\({kind}"):
            store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
        assert store.ledger.state(entry.bundle_id) == "burned" and not file.exists()


def test_a_file_that_cannot_be_preloaded_is_not_chosen_again(tmp_path: Path) -> None:
    entry = some_entry()
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        put(store, entry)
    (tmp_path / BUNDLES / entry.bundle_id.hex()).write_bytes(os.urandom(900))
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        with pytest.raises(InputError, match="damaged"):
            store.preload(entry.bundle_id)
        assert not store.ready() and store.used_bytes == 0
