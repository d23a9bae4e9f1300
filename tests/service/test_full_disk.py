"""A disk that takes no more, for the store and for a server process; the clients are served as soon as it does again.

The kernel refuses every write beyond a file size: the same call fails, at the same places, as on a full file system.
"""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from sphynx.errors import DiskError, PeerGaveUpError
from sphynx.service.store import BUNDLES, LEDGER, Store
from tests.service.scene import Scene
from tests.service.tiny import OWNER, put, some_bundle, some_entry, tiny_program

PROGRAM = tiny_program().content_hash
QUOTA = 100_000


@contextmanager
def full_disk(process: int = 0, *, file_bytes: int = 0) -> Iterator[None]:
    """No file of the process (0: this one) grows beyond so many bytes."""
    before = resource.prlimit(process, resource.RLIMIT_FSIZE)
    resource.prlimit(process, resource.RLIMIT_FSIZE, (file_bytes, before[1]))
    try:
        yield
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("does_the_bundle_fit", [True, False])
def test_a_bundle_that_could_not_be_kept_does_not_count(tmp_path: Path, does_the_bundle_fit: bool) -> None:
    """Its file may fit where the ledger's change no longer does."""
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        for _ in range(4):
            refused = some_entry()
            store.reserve(refused, most=2)
            log_bytes = (tmp_path / f"{LEDGER}-wal").stat().st_size
            assert log_bytes > 2 * some_bundle(refused).bytes
            with full_disk(file_bytes=log_bytes if does_the_bundle_fit else 100), pytest.raises(DiskError):
                store.put(some_bundle(refused), owner=OWNER, offline_seconds=1, offline_bytes=1)
            assert not list((tmp_path / BUNDLES).iterdir()) and not store.ready()
        store.reserve(some_entry(), most=1)
        assert store.ledger.state(refused.bundle_id) == "discarded"


def test_what_was_discarded_on_a_full_disk_is_not_ready(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        entry = some_entry()
        put(store, entry)
        with full_disk():
            store.discard(entry.bundle_id)
            assert store.ledger.state(entry.bundle_id) == "ready"  # still written so
            assert not store.ready() and not store.alive([entry.bundle_id])
            with pytest.raises(DiskError):
                store.reserve(some_entry())
        store.reserve(some_entry())
        assert store.ledger.state(entry.bundle_id) == "discarded"


def test_what_a_worker_discarded_on_a_full_disk_outlives_its_connection(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        entry = some_entry()
        put(store, entry)
        with full_disk():
            store.ledger.on_behalf_of("a worker").discard(entry.bundle_id)
            assert not store.ledger.on_behalf_of("another").ready() and not store.ready()
        store.reserve(some_entry())
        assert store.ledger.state(entry.bundle_id) == "discarded"


def test_a_bundle_that_cannot_be_burned_is_not_used(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=QUOTA) as store:
        entry = some_entry()
        put(store, entry)
        with full_disk(), pytest.raises(DiskError, match="cannot be written"):
            store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)
        store.take(entry.bundle_id, owner=OWNER, program=PROGRAM)


def test_what_the_disk_has_no_room_for_is_refused_before_the_work(tmp_path: Path) -> None:
    with Store(tmp_path, quota_bytes=1 << 60) as store:
        put(store, some_entry())
        with pytest.raises(DiskError, match="bytes left"):
            store.check_room(1 << 40, owner=OWNER, program=PROGRAM, backend="gc", batch=1)


def test_clients_hear_of_a_full_disk_and_are_served_once_it_is_not(scene: Scene) -> None:
    """More attempts than a client may keep bundles: each left one that counted for ever."""
    scene.server.flags = ("--pool", "2")
    server = scene.server.start()
    assert server.process is not None
    for _ in range(3):
        with (
            scene.client() as client,
            full_disk(server.process.pid),
            pytest.raises(PeerGaveUpError, match="the server's disk is full, damaged or cannot be written"),
        ):
            client.prepare(1, backend="gmw")
        assert server.wait_for("refused")["where"].endswith(LEDGER)
    with scene.client() as client:
        client.prepare(2, backend="gmw")
        with full_disk(server.process.pid), pytest.raises(PeerGaveUpError, match="disk is full"):
            client.infer(scene.pixels)
    with scene.client() as client:
        assert np.array_equal(client.infer(scene.pixels).integer_logits, scene.logits)
    assert server.stop() == 0
