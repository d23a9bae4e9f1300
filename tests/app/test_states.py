"""The page says its promise first, and shows each kind of answer: sure, unsure, a label alone, numbers, none.

In headless Chromium, at the width of a phone and of a desk; skipped where there is none.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pytest

from sphynx.app.answer import outputs_of
from tests.app.conftest import Scene, pixels
from tests.app.devtools import Browser
from tests.app.test_answers import png
from tests.app.test_questions import drop, wait_until

ANSWERED = "document.body.dataset.answer"
TEXT = "document.getElementById('%s').textContent"
# Shows an answer as the page does when the program has told it, other than by asking.
SHOW = """
(async () => {
  const { clearAnswer, showPrivate } = await import("./answer.js"), found = %s;
  clearAnswer(false);
  return showPrivate(found, 0.5).state;
})()
"""
TOLD: dict[str, Any] = {
    "received": {"bytes": "AAECAw==", "counts": [1, 1, 1, 1] + [0] * 252},
    "other": None,
    "outputs": [],
    "layers": [],
    "online_seconds": 0.02,
    "offline_seconds": 0.3,
    "offline_bytes": 1e6,
    "online_sent_bytes": 4,
    "online_received_bytes": 4,
    "online_rounds": 3,
    "prepared_now": False,
}


def open_page(browser: Browser, scene: Scene, width: int = 1280, height: int = 844) -> None:
    browser.look(width, height, "light")
    browser.call("Page.navigate", url=scene.app.url)
    browser.wait_for("document.querySelectorAll('#samples button').length && document.body.dataset.ready")


def show(browser: Browser, **found: Any) -> str:
    return str(browser.evaluate(SHOW % json.dumps({**TOLD, **found})))


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_promise_comes_first_and_what_is_for_experts_is_closed(scene: Scene, browser: Browser, width: int) -> None:
    open_page(browser, scene, width)
    assert "Your picture stays here. The server computes on noise." in browser.evaluate(
        "document.querySelector('.lead').textContent"
    )
    rect = browser.evaluate(
        "(({ top, bottom, width }) => [top, bottom, width])(document.querySelector('.promise').getBoundingClientRect())"
    )
    assert 0 < rect[0] < rect[1] < 600 and rect[2] > 250
    assert not browser.evaluate("document.getElementById('advanced').open")
    seen = browser.evaluate("document.body.innerText")
    assert not [word for word in ("bundle", "Bundle", "GMW", "ReLU", "Garbled") if word in seen]
    browser.evaluate("document.querySelector('.hero a').click()")
    browser.wait_for("location.pathname.endsWith('/limits') && document.readyState === 'complete'")
    assert "What the server does not learn" in browser.evaluate("document.body.innerText")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_an_address_of_an_earlier_start_is_a_page(scene: Scene, browser: Browser, width: int) -> None:
    browser.look(width, 844, "light")
    browser.call("Page.navigate", url=f"http://{urlsplit(scene.app.url).netloc}/an-older-token/")
    browser.wait_for("document.readyState === 'complete' && !!document.querySelector('h1')")
    assert "This address is not valid" in browser.evaluate("document.body.innerText")
    assert browser.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") == "24px"  # its style is allowed
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    wait_until(lambda: bool(browser.evaluate("true") and browser.complaints))
    assert all("403" in complaint for complaint in browser.complaints)
    browser.complaints.clear()


def test_on_a_phone_the_answer_is_in_view_after_a_tap(scene: Scene, browser: Browser) -> None:
    open_page(browser, scene, 390, 700)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    browser.evaluate("document.querySelector('#samples button').click()")
    browser.wait_for(ANSWERED)
    top, bottom = browser.evaluate(
        "(({ top, bottom }) => [top, bottom])(document.querySelector('.asked').getBoundingClientRect())"
    )
    assert 0 <= top < bottom <= 700
    assert browser.complaints == []


@pytest.mark.parametrize("width", [pytest.param(390, marks=pytest.mark.slow), 1280])
def test_answers_are_sure_or_unsure_by_the_probability_that_the_page_states(
    scene: Scene, browser: Browser, width: int
) -> None:
    open_page(browser, scene, width)
    assert show(browser, labels=["pine_tree", "sea"], probabilities=[0.8, 0.1]) == "sure"
    assert browser.evaluate(TEXT % "verdict") == "pine tree, 80 %"
    assert show(browser, labels=["pine_tree", "sea"], probabilities=[0.28, 0.24]) == "unsure"
    assert browser.evaluate(TEXT % "verdict") == "unsure"
    status = browser.evaluate(TEXT % "status")
    assert "pine tree with 28 %" in status and "below 50 %" in status


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_a_label_alone_has_no_bars(scene: Scene, browser: Browser, width: int) -> None:
    open_page(browser, scene, width)
    assert show(browser, labels=["pine_tree"]) == "alone"
    assert browser.evaluate(TEXT % "verdict") == "pine tree"
    assert "label alone" in browser.evaluate(TEXT % "status")
    assert browser.evaluate("document.querySelectorAll('#bars li').length") == 0


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_outputs_that_are_not_classes_are_drawn_or_listed(scene: Scene, browser: Browser, width: int) -> None:
    open_page(browser, scene, width)
    maps, numbers = np.arange(2 * 4 * 6.0).reshape(2, 4, 6), np.arange(20.0)
    assert show(browser, outputs=outputs_of([("mask", maps), ("places", numbers)])) == "numbers"
    assert browser.evaluate("[...document.querySelectorAll('#outputs canvas')].map((c) => [c.width, c.height])") == [
        [6, 4],
        [6, 4],
    ]
    drawn = "document.querySelector('#outputs canvas').getContext('2d').getImageData(0, 0, 6, 4).data"
    assert browser.evaluate(f"[{drawn}[0], {drawn}[4 * 23]]") == [0, 255]
    assert "8 more" in browser.evaluate(TEXT % "outputs")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_no_error_speaks_python(scene: Scene, browser: Browser, width: int) -> None:
    open_page(browser, scene, width)
    whole = png(pixels(1))
    for content in (b"no picture", whole[:60], whole[:-30], whole[:40] + bytes(20) + whole[60:]):
        drop(browser, content)
        text = browser.wait_for(TEXT % "trouble")
        assert not [word for word in ("Error", "object at", "Exception", "errno", "<", "`") if word in text], text
    browser.complaints.clear()  # of the refusals


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_history_keeps_each_answer_beside_its_picture(scene: Scene, browser: Browser, width: int) -> None:
    open_page(browser, scene, width)
    for colour in (40, 220):
        drop(browser, png(pixels(1) * 0 + colour))
        browser.wait_for(ANSWERED)
    middles = browser.evaluate(
        "[...document.querySelectorAll('#history canvas')]"
        ".map((canvas) => canvas.getContext('2d').getImageData(48, 48, 1, 1).data[0])"
    )
    assert middles == [220, 40]
    assert browser.complaints == []


def test_the_page_says_the_warning_of_its_network(
    scene: Scene, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = "document.getElementById('warning').hidden ? '' : document.getElementById('warning').textContent"
    for warning in ("", "a demonstration"):
        monkeypatch.setattr("sphynx.app.network.warning_of", lambda _, said=warning: said)
        browser.call("Page.navigate", url=scene.app.url)
        browser.wait_for("document.querySelectorAll('#samples button').length")
        assert browser.evaluate(shown) == (f"Warning: {warning}." if warning else "")
