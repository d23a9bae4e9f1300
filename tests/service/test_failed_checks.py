"""A client whose oblivious transfers are not consistent: what the server does with it and with its bundles."""

from __future__ import annotations

import pytest

from sphynx.errors import PeerGaveUpError
from tests.protocol.flipping_receiver import FlippingReceiver, flipping
from tests.service.scene import Scene


def fail_a_check(scene: Scene, monkeypatch: pytest.MonkeyPatch, *, ready: int = 0) -> None:
    """Prepare `ready` bundles, then one with an inconsistent extension, all on one connection."""
    with monkeypatch.context() as patched, scene.client() as client:
        receiver = flipping(patched, flips={0: 0})
        client.prepare(1 + ready, backend="gc")  # the first sets up
        made: FlippingReceiver = receiver()
        made.start = made.done
        with pytest.raises(PeerGaveUpError, match="extension of oblivious transfers is not consistent"):
            client.prepare(1, backend="gc")


def test_what_was_prepared_with_the_offset_is_burned(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bundles of other connections, whose offsets are others, are not."""
    scene.server.start()
    with scene.client() as client:
        client.prepare(1, backend="gmw")
        (kept,) = client.ready
    fail_a_check(scene, monkeypatch, ready=1)
    with scene.client() as client:
        assert [entry.bundle_id for entry in client.ready] == [kept.bundle_id]
        client.prepare(1, backend="gc")  # with a new offset
        for _ in range(2):
            assert (client.infer(scene.pixels).integer_logits == scene.logits).all()
    assert scene.server.stop() == 0
    assert scene.states(scene.server.state).count("discarded") == 3
