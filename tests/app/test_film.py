"""The film of the protocol shows the messages of the run, all of them and no others; the server's bytes are its own."""

from __future__ import annotations

import pytest

from tests.app.conftest import Scene, pixels
from tests.app.devtools import Browser
from tests.app.test_answers import png
from tests.app.test_questions import drop
from tests.app.test_states import ANSWERED, TEXT, open_page

PLAYED = "document.body.dataset.filmed"
FASTEST = "document.getElementById('speed').value = '4'; document.getElementById('play').click()"


@pytest.mark.parametrize("backend", ["gmw", "gc"])
def test_the_film_is_of_every_message_of_the_run(scene: Scene, backend: str) -> None:
    found = scene.ask(png(pixels(41)), f"backend={backend}")
    film = found["film"]
    assert sum(message["bytes"] for message in film if message["up"]) == found["online_sent_bytes"]
    assert sum(message["bytes"] for message in film if not message["up"]) == found["online_received_bytes"]
    times = [message["at"] for message in film]
    assert times == sorted(times) and times[0] == 0 and times[-1] <= found["online_seconds"]
    assert film[0]["up"] and film[0]["title"] == "the picture" and film[-1]["title"] == "the answer"


@pytest.mark.slow
@pytest.mark.parametrize(("width", "motion"), [(390, "no-preference"), (1280, "no-preference"), (390, "reduce")])
def test_it_plays_to_its_end_and_shows_what_the_server_saw(
    scene: Scene, browser: Browser, width: int, motion: str
) -> None:
    open_page(browser, scene, width)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": motion}])
    assert browser.evaluate("document.getElementById('film').hidden")
    drop(browser, png(pixels(42)))
    browser.wait_for(ANSWERED)
    browser.evaluate(f"delete document.body.dataset.filmed; {FASTEST}")
    if motion == "reduce":
        moved = "new DOMMatrix(getComputedStyle(document.getElementById('flying')).transform).m41"
        middle = "(document.getElementById('lane').clientWidth - document.getElementById('flying').clientWidth) / 2"
        assert abs(browser.evaluate(f"{moved} - {middle}")) < 1
    messages = browser.evaluate("document.querySelectorAll('#messages li').length")
    assert int(browser.wait_for(PLAYED)) == messages > 3
    assert browser.evaluate(TEXT % "film-says").startswith(f"{messages} of {messages}. the answer")
    browser.evaluate("document.getElementById('saw').click()")
    drawn = browser.evaluate(
        "(() => { const c = document.getElementById('saw-bytes');"
        " const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        " return Array.from(d).filter((_, n) => n % 4 === 0 && d[n + 3] === 255); })()"
    )
    masked = scene.record.masked_pictures[-1]
    assert bytes(drawn[: len(masked)]) == masked and len(drawn) > len(masked)
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    drop(browser, png(pixels(43)))  # another picture's film is not shown
    assert browser.evaluate("document.getElementById('film').hidden")
    browser.wait_for(ANSWERED)
    assert browser.complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_a_film_that_is_stopped_can_be_played_again(scene: Scene, browser: Browser, width: int) -> None:
    open_page(browser, scene, width)
    drop(browser, png(pixels(44)))
    browser.wait_for(ANSWERED)
    browser.evaluate("document.getElementById('speed').value = '-2'; document.getElementById('play').click()")
    assert browser.evaluate(TEXT % "play") == "Stop"
    browser.evaluate("document.getElementById('play').click()")
    assert browser.evaluate(TEXT % "play") == "Play"
    browser.evaluate(FASTEST)
    assert browser.wait_for(PLAYED)
    assert browser.complaints == []
