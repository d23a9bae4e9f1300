"""Shares that one client may take of a server, so that enough is left for others: a server process and two clients."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from sphynx.errors import PeerGaveUpError
from sphynx.service.store import BUNDLES
from tests.service.scene import Scene


def prepare(scene: Scene, name: str, count: int, batch: int = 1) -> None:
    with scene.client(name) as client:
        client.prepare(count, backend="gmw", batch=batch)


def test_who_drops_what_was_prepared_has_still_had_it(scene: Scene) -> None:
    """A client that loses its bundles, or says so, gets no further preparations for it within the hour."""
    scene.server.flags = ("--hourly", "5")
    scene.server.start()
    prepare(scene, "alice", 1)
    prepare(scene, "alice", 1, batch=3)
    shutil.rmtree(scene.client_state)  # the next connection tells the server to drop them
    with pytest.raises(PeerGaveUpError, match="prepare for 5 images per hour, this one has prepared for 4") as refused:
        prepare(scene, "alice", 2)
    assert "the server's `images_per_hour`" in refused.value.remedy
    assert scene.states(scene.server.state) == ["discarded", "discarded"]  # nothing was begun
    prepare(scene, "alice", 1)
    with scene.client("bob") as bob:
        assert np.array_equal(bob.infer(scene.pixels).integer_logits, scene.logits)
    assert scene.server.stop() == 0


def test_one_client_cannot_use_up_the_disk(scene: Scene) -> None:
    scene.server.start()
    prepare(scene, "alice", 1)
    assert scene.server.stop() == 0
    (bundle,) = (scene.server.state / BUNDLES).iterdir()
    scene.server.flags = ("--quota", str(6 * bundle.stat().st_size))
    scene.server.start()
    with pytest.raises(
        PeerGaveUpError, match=r"refused to prepare 3: this client's bundles would take [0-9,]+ bytes, more"
    ):
        prepare(scene, "alice", 3)
    assert len(scene.states(scene.server.state)) == 1  # said before the work was done
    prepare(scene, "alice", 2)
    with pytest.raises(PeerGaveUpError, match="more than remain for others"):
        prepare(scene, "alice", 1)
    with scene.client("bob") as bob:
        assert np.array_equal(bob.infer(scene.pixels).integer_logits, scene.logits)
    scene.check_inference()  # and what she used makes room for another
    prepare(scene, "alice", 1)
    assert scene.server.stop() == 0
