"""Files of bundles that are damaged, swapped or another version's: refused and spent, and the next serves."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from sphynx.errors import BundleGoneError, BundleRefusedError, InputError
from sphynx.program.interpret import interpret
from sphynx.service.local import running_server
from sphynx.service.store import BUNDLES, Store
from tests.program.foreign_kinds import FOREIGN_KINDS, change_kind
from tests.service.tiny import OWNER, put, save_tiny, some_bundle, some_entry, tiny_program

PROGRAM = tiny_program().content_hash
QUOTA = 5000


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
