"""The theft of a network by a client of a real server, over TLS: it succeeds, unless clients need not be trusted."""

from __future__ import annotations

import numpy as np
import pytest

from sphynx.errors import PeerGaveUpError
from sphynx.program.backends import Backend
from sphynx.service.strikes import FILE, MOST, Strikes
from tests.service.scene import Scene
from tests.service.thief import Thief


@pytest.mark.parametrize("backend", ["gc", pytest.param("gmw", marks=pytest.mark.slow)])
def test_a_client_that_is_trusted_takes_all_weights(
    backend: Backend, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.server.start()
    with scene.client() as client:
        thief = Thief(client, backend, monkeypatch)
        stolen = thief.steal()
    assert (thief.inferences, thief.images) == (6, 66)
    assert stolen.keys() == scene.weights.keys() and sum(part.size for part in stolen.values()) == 149
    for name, weights in scene.weights.items():
        np.testing.assert_array_equal(stolen[name], weights)
    assert Strikes(scene.server.state / FILE).count("alice") == 0  # nobody noticed


def test_a_client_that_is_not_trusted_gets_nothing(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one answer, three times; then it is locked out."""
    scene.server.flags = ("--security", "malicious-client")
    scene.server.start()
    for attempt in range(1, MOST + 1):
        with monkeypatch.context() as patched, scene.client() as client:
            thief = Thief(client, "gc", patched)
            with pytest.raises(PeerGaveUpError, match="numbers failed the check"):
                thief.steal()
        assert thief.inferences == 0
        assert Strikes(scene.server.state / FILE).count("alice") == attempt
    with pytest.raises(PeerGaveUpError, match="locked out"):
        scene.client().__enter__()
    assert scene.server.stop() == 0
    assert {line["event"] for line in scene.server.log}.isdisjoint({"prepared", "inferred"})
