"""Groups of bundles: ready on both sides in one transaction or not at all, asked for by whoever keeps a pool."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import sphynx
from sphynx.core import rlwe
from sphynx.errors import BundleRefusedError, ConnectionLostError, PeerGaveUpError, SphynxError
from sphynx.program.interpret import interpret
from sphynx.protocol.bundle import Bundle
from sphynx.protocol.inference_client import InferenceClient
from sphynx.protocol.linear_plan import plan_group, plan_program
from sphynx.service import session
from sphynx.service.ledger import Ledger
from sphynx.service.local import HOST, LocalServer, running_server
from sphynx.service.session import Go, Prepare
from sphynx.service.settings import Limits
from sphynx.service.store import BUNDLES, Store
from tests.service.test_ahead import eventually
from tests.service.tiny import OWNER, save_tiny, some_bundle, some_entry, tiny_program

PROGRAM = tiny_program()
GROUP = plan_group(PROGRAM).images
ONE_SET_BYTES = max(
    sum(rlwe.prepared_bytes(plan.params, conv) for conv in plan.convs.values())
    for plan in (plan_program(PROGRAM), plan_group(PROGRAM))
)


def test_a_group_is_reserved_as_a_whole(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    entries = [some_entry() for _ in range(4)]
    for limit in ({"most": 3}, {"hourly": 3}):
        with pytest.raises(BundleRefusedError, match="a client may"):
            ledger.reserve(*entries, **limit)
    with pytest.raises(BundleRefusedError, match="identifier was used"):
        ledger.reserve(*entries, entries[0])
    assert [ledger.state(entry.bundle_id) for entry in entries] == [None] * 4
    ledger.reserve(*entries, most=4, hourly=4)
    assert {ledger.state(entry.bundle_id) for entry in entries} == {"reserved"}


def test_a_group_becomes_ready_as_a_whole(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger")
    ids = [entry.bundle_id for entry in (some_entry(), some_entry())]
    ledger.reserve(*(some_entry(bundle_id) for bundle_id in ids))
    make_ready = partial(ledger.make_ready, size_bytes=10, offline_seconds=0.5, offline_bytes=20)
    with pytest.raises(BundleRefusedError, match="not being prepared"):
        make_ready(*ids, os.urandom(16))
    assert [ledger.state(bundle_id) for bundle_id in ids] == ["reserved"] * 2
    make_ready(*ids)
    assert {entry.bundle_id for entry in ledger.ready(owner=OWNER)} == {*ids}


def test_a_group_of_which_one_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    entries = [some_entry() for _ in range(3)]
    bundles = [some_bundle(entry) for entry in entries]
    bundles[1].arrays["share/first"] = np.zeros(3, np.complex128)  # no file holds such numbers
    with Store(tmp_path, quota_bytes=20_000) as store:
        store.reserve(*entries)
        with pytest.raises(Exception, match="complex"):
            store.put(*bundles, owner=OWNER, offline_seconds=1, offline_bytes=1)
        assert not store.ready() and {store.ledger.state(entry.bundle_id) for entry in entries} == {"discarded"}
        assert not list((tmp_path / BUNDLES).iterdir())


@pytest.fixture
def server(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[LocalServer]:
    save_tiny(tmp_path / "compiled")
    processes, memory_bytes = getattr(request, "param", (1, None))
    limits = Limits(weight_memory_bytes=memory_bytes)
    with running_server(tmp_path / "compiled", tmp_path / "running", limits=limits, processes=processes) as running:
        yield running


@pytest.mark.parametrize(
    "server",
    [(1, None), (2, None), (1, ONE_SET_BYTES), (2, ONE_SET_BYTES)],
    indirect=True,
    ids=["one process", "workers", "memory for one set of weights", "workers, and memory for one set"],
)
def test_a_client_prepares_groups_and_each_bundle_answers(server: LocalServer, tmp_path: Path) -> None:
    program, weights = save_tiny(tmp_path / "compiled")
    pixels = np.random.default_rng(0).integers(0, 256, (GROUP + 3, *program.image)).astype(np.uint8)
    done: list[int] = []
    with server.client() as client:
        client.prepare(1, backend="gmw")
        (alone,) = client.ready
        client.prepare(GROUP + 2, backend="gmw", done=done.append)
        assert done == list(range(1, GROUP + 3)) and len(client.ready) == GROUP + 3
        group = [entry for entry in client.ready if entry.bundle_id != alone.bundle_id]
        assert len({entry.offline_bytes for entry in group}) == 2  # of the whole group and of the two left over
        assert min(entry.offline_bytes for entry in group) < alone.offline_bytes / 3
    with server.client() as client:  # bundles outlive the connection, those of a group as others
        assert len(client.ready) == GROUP + 3
        for image, expected in zip(pixels, interpret(program, weights, pixels), strict=True):
            assert np.array_equal(client.infer(image).integer_logits, expected)


def test_a_client_that_leaves_within_a_group_leaves_nothing_ready(
    server: LocalServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last message of the offline phase of half of its bundles."""
    made = InferenceClient.prepare_each

    def fails(self: InferenceClient, ids: list[bytes], *more: object) -> Iterator[Bundle]:
        yield from made(self, ids[: len(ids) // 2], *more)  # type: ignore[arg-type]
        raise ConnectionLostError("gone", where="here", remedy="none")

    monkeypatch.setattr(InferenceClient, "prepare_each", fails)
    with pytest.raises(SphynxError), server.client() as client:
        client.prepare(GROUP, backend="gmw")
    monkeypatch.undo()
    with server.client() as client:
        assert not client.ready
        client.prepare(1)
        assert len(client.ready) == 1


def test_a_group_that_is_too_large_is_refused(server: LocalServer) -> None:
    with server.client() as client, pytest.raises(PeerGaveUpError, match=f"at most {GROUP // 2} bundles of 2 images"):
        session.send(client._channel, Prepare(GROUP, "gmw", 2, session.new_nonce(), GROUP))
        session.expect(client._channel, Go)


def test_a_pool_is_filled_in_groups(server: LocalServer) -> None:
    where = f"{HOST}:{server.port}"
    with sphynx.Client(where, keys=server.client_keys[0], ahead=GROUP // 2, backend="gmw") as client:
        eventually(lambda: client.ready > 0)
        assert client.ready == GROUP  # all at once
    with sphynx.Client(where, keys=server.client_keys[0], backend="gmw") as client:
        assert client.ready == GROUP


def test_how_many_fill_a_pool(tmp_path: Path) -> None:
    """A group unless the pool is small beside it; what the server leaves room for; else one."""
    save_tiny(tmp_path / "compiled")
    limits = Limits(bundles_per_client=GROUP + 4)
    with (
        running_server(tmp_path / "compiled", tmp_path / "running", limits=limits) as running,
        running.client() as client,
    ):
        counts = [client.refill_count(pool) for pool in (1, GROUP // 2 - 1, GROUP // 2, 100)]
        assert counts == [1, 1, GROUP, GROUP]
        client.prepare(8, backend="gmw")
        assert client.refill_count(GROUP) == GROUP + 4 - 8
        client.prepare(5, backend="gmw")
        assert client.refill_count(GROUP) == 1
