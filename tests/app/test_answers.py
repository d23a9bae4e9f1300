"""The page is told private answers, what the server really received, bundles, progress, estimates."""

from __future__ import annotations

import base64
import io
import json
import time
import urllib.error
import urllib.request
from itertools import islice
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sphynx.api.both_parties import ask_privately
from sphynx.app import web
from sphynx.app.answer import answer_of
from sphynx.app.histogram import byte_counts, chi_square_same, tail_probability
from sphynx.app.web import MOST_STREAMS
from sphynx.program.interpret import interpret
from sphynx.program.revealing import revealing_label
from tests.app.conftest import Scene, pixels, small_program
from tests.program.programs import random_weights

PICTURES = 24
SAFE_LEVEL = 1e-6  # a sound mask fails once in a million runs


def png(image: np.ndarray) -> bytes:
    content = io.BytesIO()
    Image.fromarray(image.transpose(1, 2, 0)).save(content, "PNG")
    return content.getvalue()


@pytest.mark.parametrize("backend", ["gmw", "gc"])
def test_the_private_answer_is_the_librarys_and_that_in_the_clear(scene: Scene, backend: str) -> None:
    image = pixels(1)
    expected = interpret(scene.compiled.program, scene.compiled.weights, image[None])[0].tolist()
    found = scene.ask(png(image), f"backend={backend}")
    assert found["integer_logits"] == expected and found["backend"] == backend
    assert found["labels"][0] == ("cat", "dog", "bird")[int(np.argmax(expected))]
    assert found["prepared_now"] and found["offline_bytes"] > 0  # none was ready
    assert [layer["layer"] for layer in found["layers"]] == ["pixels", "relu", "logits"]
    clear = scene.ask(png(image), f"backend={backend}&clear=1")
    assert clear["integer_logits"] == expected and "received" not in clear


def test_a_label_alone_comes_without_probabilities() -> None:
    """And none where the server is not sure."""
    program, images = small_program(), np.stack([pixels(seed) for seed in range(3)])
    weights = random_weights(program)
    oracle = interpret(program, weights, images)
    for margin, labels in ((0.0, [["cat", "dog", "bird"][one] for one in oracle.argmax(axis=1)]), (2.0**15, [""] * 3)):
        found = ask_privately(revealing_label(program, margin), weights, images, "gmw")
        told = [answer_of(answer) for answer in found]
        assert [answer["labels"] for answer in told] == [[label] if label else [] for label in labels]
        assert all({"probabilities", "integer_logits"}.isdisjoint(answer) and not answer["outputs"] for answer in told)


def test_what_is_drawn_is_what_the_server_received(scene: Scene) -> None:
    for seed in (2, 3):
        image = pixels(seed)
        found = scene.ask(png(image))
        drawn = base64.b64decode(found["received"]["bytes"])
        assert drawn == scene.record.masked_pictures[-1]
        assert len(drawn) == image.size * scene.compiled.program.ring_bits // 8 == found["layers"][0]["sent_bytes"]
        assert found["received"]["counts"] == byte_counts(drawn).tolist()
        shown = np.frombuffer(base64.b64decode(found["picture"]["bytes"]), np.uint8).reshape(found["picture"]["shape"])
        assert np.array_equal(shown.transpose(2, 0, 1), image)
    assert base64.b64decode(found["other"]["bytes"]) == scene.record.masked_pictures[-2]
    again = scene.ask(png(image))  # the same picture: other masks, and still the other picture to compare with
    assert again["received"]["bytes"] != found["received"]["bytes"]
    assert again["other"]["bytes"] == found["other"]["bytes"]


def test_what_the_server_receives_does_not_depend_on_the_picture(scene: Scene) -> None:
    """Black, white, ramps and noise: byte histograms of all messages are those of one source, by chi-square."""
    ramp = np.broadcast_to(np.arange(16, dtype=np.uint8) * 16, (3, 16, 16))
    kinds = [np.zeros((3, 16, 16), np.uint8), np.full((3, 16, 16), 255, np.uint8), ramp, pixels(4)]
    asked = [kinds[number % len(kinds)] for number in range(PICTURES)]
    sent = np.stack([byte_counts(base64.b64decode(scene.ask(png(image))["received"]["bytes"])) for image in asked])
    assert tail_probability(*chi_square_same(sent)) > SAFE_LEVEL
    by_kind = np.stack([sent[number :: len(kinds)].sum(0) for number in range(len(kinds))])
    assert tail_probability(*chi_square_same(by_kind)) > SAFE_LEVEL
    # The same test tells the pictures themselves apart, and a mask that is the same twice.
    plain = np.stack([byte_counts(image.tobytes()) for image in asked])
    assert tail_probability(*chi_square_same(plain)) < SAFE_LEVEL
    assert len(set(scene.record.masked_pictures)) == len(scene.record.masked_pictures)


def test_tail_probabilities_are_those_of_tables() -> None:
    for statistic, degrees, expected in ((293.2478, 255, 0.05), (330.5197, 255, 0.001), (18.307, 10, 0.05)):
        assert tail_probability(statistic, degrees) == pytest.approx(expected, rel=0.01)
    assert tail_probability(420.0, 255) == pytest.approx(3.353e-10, rel=0.1)
    alike = np.array([[5, 5, 0], [10, 10, 0]])
    assert chi_square_same(alike) == (0.0, 1)  # what never occurs is left out
    assert chi_square_same(np.array([[10, 20], [20, 10]])) == pytest.approx((20 / 3, 1))


def events(scene: Scene, most: int) -> list[tuple[str, dict[str, Any]]]:
    with urllib.request.urlopen(scene.app.url + "events", timeout=60) as stream:
        lines = (line.decode().strip() for line in stream)
        told = (line for line in lines if line and not line.startswith(":"))
        pairs = islice(zip(told, told, strict=False), most)
        return [(kind.removeprefix("event: "), json.loads(said.removeprefix("data: "))) for kind, said in pairs]


def test_a_page_hears_of_the_latest_state_at_once(scene: Scene) -> None:
    scene.ask(png(pixels(5)))
    found = dict(events(scene, 2))
    assert found["bundles"]["ready"] == {"gc": 0, "gmw": 0} and found["bundles"]["kept"] == "gmw"
    assert found["work"]["doing"] in ("nothing", "asking")


def test_pages_that_were_closed_make_room_for_others(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "HEARTBEAT_SECONDS", 1e9)  # nothing is written that would show that they are gone
    deadline_s = time.monotonic() + 60
    for _ in range(MOST_STREAMS):
        while True:
            try:
                events(scene, 1)
                break
            except urllib.error.HTTPError as busy:  # pages that an earlier test closed are noticed soon
                assert busy.code == 503 and time.monotonic() < deadline_s
                time.sleep(0.01)
    while not scene.app.streams.acquire(blocking=False):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    scene.app.streams.release()


def test_progress_is_told_by_phase_and_layer(scene: Scene) -> None:
    with scene.desk.bulletin.subscribed() as news:
        scene.ask(png(pixels(6)), "backend=gc")
        told = [news.get(timeout=60) for _ in range(news.qsize())]
    work = [said for kind, said in told if kind == "work"]
    offline = [said for said in work if said["doing"] == "preparing"]
    online = [said for said in work if said["doing"] == "asking"]
    assert offline and work.index(offline[-1]) < work.index(online[0])
    parts = [said["part"] for said in offline if said["phase"] == "offline"]
    assert parts == sorted(parts) and parts[-1] == pytest.approx(1.0, abs=0.05)  # of the bytes that are estimated
    assert online[-1]["part"] == 1.0 and {said["layer"] for said in online} == {"pixels", "relu", "logits"}


def test_estimates_grow_with_the_link(scene: Scene) -> None:
    for backend in ("gmw", "gc"):
        status, said = scene.request("GET", f"estimates?backend={backend}")
        found = json.loads(said)
        online = [found[link]["online_seconds"] for link in ("loopback", "lan", "wan")]
        assert status == 200 and online == sorted(online) and online[0] < online[2]


@pytest.mark.parametrize("body", [b"", b"no picture", b"\x89PNG\r\n\x1a\n" + bytes(100)])
def test_what_is_not_a_picture_is_refused_with_a_remedy(scene: Scene, body: bytes) -> None:
    status, said = scene.request("POST", "ask?backend=gmw", body)
    assert (
        status == 400
        and ("cannot be read" if body else "is empty") in json.loads(said)["what"]
        and json.loads(said)["remedy"]
    )
    status, said = scene.request("POST", "ask?backend=none", png(pixels(0)))
    assert status == 400 and "not a valid ReLU backend" in json.loads(said)["what"]
