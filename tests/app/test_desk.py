"""The page's worker between questions, and with those that nobody waits for; answers in the clear."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest
import torch

import sphynx
from sphynx.app.bulletin import Bulletin
from sphynx.app.desk import Desk
from sphynx.app.in_the_clear import InTheClear
from sphynx.app.parties import float_run
from sphynx.app.watch import Watch
from sphynx.network.stored import NORMALISATION
from sphynx.network.trained import save_model
from sphynx.program.cost.rates import REFERENCE
from sphynx.protocol.bundle import load_bundle
from sphynx.service import store
from sphynx.space.design import Design
from sphynx.space.published_cells import SPHYNX
from sphynx.space.tally import Shape
from sphynx.zoo.shipped import model_names
from tests.app.conftest import Scene, pixels
from tests.app.test_answers import png
from tests.app.test_questions import busy, wait_until
from tests.compiler.networks import random_network


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """When bundles were read from the disk, and when they were taken, in order."""
    done: list[str] = []
    take = store.Store.take

    def watched_read(path: Path) -> Any:
        done.append("read")
        return load_bundle(path)

    def watched_take(self: store.Store, *arguments: Any, **settings: Any) -> Any:
        done.append("take")
        return take(self, *arguments, **settings)

    monkeypatch.setattr(store, "load_bundle", watched_read)
    monkeypatch.setattr(store.Store, "take", watched_take)
    return done


def prepare_on_disk(scene: Scene, backend: Any) -> None:
    """As if the bundle were larger than what is kept in memory, as most of garbled circuits are."""
    scene.desk.parties.client.prepare(1, backend=backend)
    connection = scene.desk.parties.client._connection
    assert connection is not None
    connection._store._at_hand.clear()


@pytest.mark.parametrize("backend", ["gmw", "gc"])
def test_a_bundle_is_read_before_the_online_phase(scene: Scene, backend: Any, reads: list[str]) -> None:
    prepare_on_disk(scene, backend)
    found = scene.ask(png(pixels(1)), f"backend={backend}")
    assert not found["prepared_now"] and reads[:2] == ["read", "take"]


def test_the_next_bundle_is_in_memory_before_anybody_asks(scene: Scene, reads: list[str]) -> None:
    prepare_on_disk(scene, "gc")
    with Desk(scene.desk.parties, Watch(), Bulletin(), lambda: REFERENCE, backend="gc", keep_ready=1) as desk:
        wait_until(lambda: desk._loaded == "gc")
        assert reads == ["read"]
        answer = desk.ask(pixels(2), "gc")
        assert answer["backend"] == "gc" and reads[1] == "take"


def test_a_question_that_nobody_waits_for_is_not_asked(scene: Scene) -> None:
    asked, address = len(scene.record.masked_pictures), urlsplit(scene.app.url)
    with busy(scene), socket.create_connection((str(address.hostname), address.port), timeout=60) as sock:
        body = png(pixels(3))
        head = f"POST {address.path}ask?backend=gmw HTTP/1.1\r\nHost: {address.netloc}\r\nContent-Length: {len(body)}"
        sock.sendall(f"{head}\r\n\r\n".encode() + body)
        wait_until(lambda: scene.desk._tasks.qsize() == 1)
    scene.ask(png(pixels(4)))
    assert len(scene.record.masked_pictures) == asked + 1


def test_in_the_clear_is_the_float_networks_own_answer(compiled_folder: Path, tmp_path: Path) -> None:
    network = random_network(Design(SPHYNX, 2, 2, (1,), Shape(3, 16, 16), 3), 1).float().eval()
    save_model(tmp_path, network)
    (tmp_path / NORMALISATION).write_text(json.dumps({"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.25, 0.3]}))
    compiled, image = sphynx.Compiled.load(compiled_folder), pixels(5)
    found = InTheClear(compiled, tmp_path).answer(image)
    mean, std = (np.array(values, np.float32)[:, None, None] for values in ([0.5, 0.4, 0.3], [0.2, 0.25, 0.3]))
    with torch.inference_mode():
        scores = network(torch.from_numpy((image / np.float32(255) - mean) / std)[None])[0].double()
    chances = dict(zip(("cat", "dog", "bird"), torch.softmax(scores, 0).tolist(), strict=True))
    assert found["by"] == "fp32" and found["clear_seconds"] > 0 and "integer_logits" not in found
    assert dict(zip(found["labels"], found["probabilities"], strict=True)) == pytest.approx(chances, rel=1e-3)
    assert list(found["probabilities"]) == sorted(found["probabilities"], reverse=True)
    assert InTheClear(compiled).answer(image)["by"] == "integers"


@pytest.mark.skipif(not model_names(), reason="sphynx-models is not installed")
def test_a_model_by_name_has_its_float_network_here(compiled_folder: Path) -> None:
    name = model_names()[0]
    run = float_run(name)
    assert run is not None and (run / "model.safetensors").is_file()
    assert float_run(compiled_folder) is None
