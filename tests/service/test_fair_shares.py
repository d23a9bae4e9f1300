"""What one client may take of a server, so that enough is left for the others: a server process and two clients."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from sphynx.protocol.channel import PeerGaveUpError
from tests.service.scene import Scene


def prepare(scene: Scene, name: str, count: int, batch: int = 1) -> None:
    with scene.client(name) as client:
        client.prepare(count, relu="gmw", batch=batch)


def test_who_drops_what_was_prepared_has_still_had_it(scene: Scene) -> None:
    """A client that loses its bundles, or says so, gets no further preparations for it within the hour."""
    scene.server.flags = ("--hourly", "5")
    scene.server.start()
    prepare(scene, "alice", 1)
    prepare(scene, "alice", 1, batch=3)
    shutil.rmtree(scene.client_state)  # the next connection tells the server to drop them
    with pytest.raises(PeerGaveUpError, match="prepare for 5 images per hour, this one did for 4") as refused:
        prepare(scene, "alice", 2)
    assert "serve --pool, --quota, --hourly" in refused.value.remedy
    assert scene.states(scene.server.state) == ["discarded", "discarded"]  # nothing was begun
    prepare(scene, "alice", 1)
    with scene.client("bob") as bob:
        assert np.array_equal(bob.infer(scene.pixels).logits, scene.logits)
    assert scene.server.stop() == 0
