"""One picture asked privately and computed in the clear, side by side; and the record of an answer, to keep."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

from sphynx.program.interpret import interpret
from sphynx.units import percent
from tests.app.conftest import Scene, pixels
from tests.app.devtools import Browser
from tests.app.test_answers import png
from tests.app.test_questions import drop
from tests.app.test_states import ANSWERED, TEXT, open_page


def text_of(page: bytes) -> str:
    class Reader(HTMLParser):
        said = ""

        def handle_data(self, data: str) -> None:
            self.said += data

    reader = Reader()
    reader.feed(page.decode())
    return reader.said


def test_a_comparison_says_that_the_integers_are_equal(scene: Scene) -> None:
    found = scene.ask(png(pixels(31)), "backend=gmw&compare=1")
    assert found["clear"]["equal"] is True and found["clear"]["fp32"] is None  # a compiled folder has no floats
    assert found["clear"]["integers"]["integer_logits"] == found["integer_logits"]
    clear = scene.desk.parties.clear
    assert clear is not None
    other = {**found, "integer_logits": [number + 1 for number in found["integer_logits"]]}
    assert clear.compare(pixels(31), other)["equal"] is False


def test_a_record_says_what_was_asked_of_whom_and_what_it_rests_on(scene: Scene) -> None:
    found = scene.ask(png(pixels(32)))
    status, page = scene.request("GET", f"record?answer={found['number']}")
    said = text_of(page)
    assert status == 200 and scene.compiled.program.content_hash in said and "Sphynx unchanged" in said
    assert f"{found['labels'][0]} ({percent(found['probabilities'][0], 1)})" in said
    assert f"{found['online_bytes']:,}" in said and "no proof to others" in said and "UTC" in said
    assert b"<script" not in page and b"http" not in page
    for number in ("0", "-1", "x", str(found["number"] + 1), ""):
        assert scene.request("GET", f"record?answer={number}")[0] == 400


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_shows_both_and_opens_the_record(scene: Scene, browser: Browser, width: int) -> None:
    open_page(browser, scene, width)
    drop(browser, png(pixels(33)))
    browser.wait_for(ANSWERED)
    assert browser.evaluate("document.getElementById('side').hidden")
    browser.evaluate("delete document.body.dataset.answer; document.getElementById('compare').click()")
    found = json.loads(browser.wait_for(ANSWERED))
    expected = interpret(scene.compiled.program, scene.compiled.weights, pixels(33)[None])[0].tolist()
    assert found["integer_logits"] == expected
    assert not browser.evaluate("document.getElementById('side').hidden")
    assert "equals that of the integers bit for bit" in browser.evaluate(TEXT % "side-says")
    rows = browser.evaluate("[...document.querySelectorAll('#side-rows tr')].map((row) => row.innerText)")
    assert (
        len(rows) == 2 and rows[0].startswith("privately") and found["labels"][0] in rows[0] and "only you" in rows[0]
    )
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    drop(browser, png(pixels(34)))  # the comparison was about the picture before
    assert browser.evaluate("document.getElementById('side').hidden && document.getElementById('after').hidden")
    browser.wait_for(ANSWERED)
    record = browser.evaluate("document.getElementById('record').href")
    browser.call("Page.navigate", url=record)
    browser.wait_for("document.readyState === 'complete' && document.title.startsWith('Record')")
    assert "What the server learned" in browser.evaluate("document.body.innerText")
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") == "24px"  # its style is allowed
    assert browser.complaints == []
