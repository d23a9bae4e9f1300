"""One question after another on the page: what is shown is always about the latest picture, or nothing is.

In headless Chromium; skipped where there is none.
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from sphynx.app.network import Network
from sphynx.app.web import App
from sphynx.program.interpret import interpret
from tests.app.conftest import Scene, pixels
from tests.app.devtools import Browser
from tests.app.test_answers import png
from tests.app.test_browser import ANSWER, DROP

SHOWN = """
(() => {
  const text = (id) => document.getElementById(id).textContent;
  const canvases = [...document.querySelectorAll("canvas:not(#history canvas)")];
  const drawn = (c) => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((value) => value);
  return {
    status: text("status"), trouble: text("trouble"), bars: text("bars"), costs: text("costs"), layers: text("layers"),
    drawn: canvases.filter((canvas) => drawn(canvas) && !canvas.hidden).map((canvas) => canvas.id).sort(),
  };
})()
"""
THUMBNAIL = """
(() => {
  const canvas = document.getElementById("asked"), data = canvas.getContext("2d").getImageData(0, 0, 96, 96).data;
  return Array.from(data.slice(4 * (48 * 96 + 48), 4 * (48 * 96 + 48) + 3));
})()
"""


WIDTHS = pytest.mark.parametrize("width", [pytest.param(390, marks=pytest.mark.slow), 1280])


def open_page(browser: Browser, url: str, width: int = 1280) -> None:
    browser.look(width, 844, "light")
    browser.call("Page.navigate", url=url)
    browser.wait_for("document.querySelectorAll('#samples button').length && document.body.dataset.ready")


def drop(browser: Browser, content: bytes) -> None:
    browser.evaluate(DROP % base64.b64encode(content).decode())


def answer(browser: Browser) -> list[int]:
    found: list[int] = json.loads(browser.wait_for(ANSWER))["integer_logits"]
    return found


def expected(scene: Scene, seed: int) -> list[int]:
    found: list[int] = interpret(scene.compiled.program, scene.compiled.weights, pixels(seed)[None])[0].tolist()
    return found


def wait_until(holds: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


@contextmanager
def busy(scene: Scene) -> Iterator[None]:
    """Questions wait meanwhile."""
    begun, over = threading.Event(), threading.Event()

    def wait() -> None:
        begun.set()
        over.wait()

    scene.desk._in_turn(wait)
    begun.wait()
    try:
        yield
    finally:
        over.set()


@WIDTHS
def test_a_file_that_cannot_be_read_leaves_nothing_of_the_picture_before(
    scene: Scene, browser: Browser, width: int
) -> None:
    open_page(browser, scene.app.url, width)
    colour = pixels(11) * 0 + 200
    drop(browser, png(colour))
    browser.wait_for(ANSWER)
    browser.wait_for("!document.getElementById('asked').hidden")
    before = browser.evaluate(SHOWN)
    assert before["bars"] and before["costs"] and before["layers"] and {"asked", "picture"} <= set(before["drawn"])
    assert browser.evaluate(THUMBNAIL) == [200, 200, 200]
    drop(browser, b"no picture at all")
    browser.wait_for("document.getElementById('trouble').textContent")
    assert browser.evaluate(SHOWN) == {
        "status": "There is no answer.",
        "trouble": browser.evaluate("document.getElementById('trouble').textContent"),
        "bars": "",
        "costs": "",
        "layers": "",
        "drawn": [],
    }
    assert "cannot be read" in browser.evaluate("document.getElementById('trouble').textContent")
    browser.complaints.clear()  # of the refusal


@WIDTHS
def test_while_a_question_waits_nothing_of_the_answer_before_is_shown(
    scene: Scene, browser: Browser, width: int
) -> None:
    open_page(browser, scene.app.url, width)
    drop(browser, png(pixels(12)))
    browser.wait_for(ANSWER)
    with busy(scene):
        drop(browser, png(pixels(13)))
        browser.wait_for("!document.getElementById('asked').hidden")  # the new picture's
        shown = browser.evaluate(SHOWN)
        assert shown == {
            "status": "Asking…",
            "trouble": "",
            "bars": "",
            "costs": "",
            "layers": "",
            "drawn": ["asked", "original"],
        }
    assert answer(browser) == expected(scene, 13)
    assert browser.complaints == []


@WIDTHS
def test_the_latest_of_several_pictures_is_answered_and_no_other_is_asked(
    scene: Scene, browser: Browser, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    wanted: list[Callable[[], bool]] = []
    answered = Network.answer

    def watched(self: Network, picture: bytes, options: Mapping[str, str], is_wanted: Callable[[], bool]) -> Any:
        wanted.append(is_wanted)
        return answered(self, picture, options, is_wanted)

    monkeypatch.setattr(Network, "answer", watched)
    open_page(browser, scene.app.url, width)
    asked = len(scene.record.masked_pictures)
    with busy(scene):
        for number, seed in enumerate((14, 15, 16), start=1):
            drop(browser, png(pixels(seed)))
            wait_until(lambda number=number: scene.desk._tasks.qsize() == number)  # type: ignore[misc]
        wait_until(lambda: [is_wanted() for is_wanted in wanted] == [False, False, True])
    assert answer(browser) == expected(scene, 16)
    assert len(scene.record.masked_pictures) == asked + 1
    assert browser.complaints == []


@WIDTHS
def test_a_page_whose_program_has_stopped_says_so(scene: Scene, browser: Browser, width: int) -> None:
    app = App([scene.desk])
    open_page(browser, app.url, width)
    drop(browser, png(pixels(17)))
    assert answer(browser) == expected(scene, 17)
    app.close()
    assert "has stopped" in browser.wait_for("document.getElementById('trouble').textContent")  # without a click
    browser.evaluate("document.querySelector('#samples button').click()")
    browser.wait_for("document.getElementById('status').textContent === 'There is no answer.'")
    shown = browser.evaluate(SHOWN)
    assert "has stopped" in shown["trouble"] and not (shown["bars"] or shown["costs"] or shown["drawn"])
    browser.complaints.clear()  # that nothing listens
