"""One page for several networks: each answers by its own weights, with its own bundles; the browser switches."""

from __future__ import annotations

import base64
import http.client
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

import sphynx
from sphynx.app.bulletin import Bulletin
from sphynx.app.desk import Desk
from sphynx.app.in_the_clear import InTheClear
from sphynx.app.parties import Parties
from sphynx.app.watch import Watch
from sphynx.app.web import App
from sphynx.program.cost.rates import REFERENCE
from sphynx.program.folder import save_program, save_weights
from sphynx.program.interpret import interpret
from tests.app.conftest import pixels, small_program
from tests.app.devtools import CHROMIUM, Browser
from tests.app.test_answers import png
from tests.app.test_browser import ANSWER, DROP
from tests.program.programs import random_weights

NAMES = {"animals": ("cat", "dog", "bird"), "fruits": ("fig", "pear", "plum")}


class Page:
    def __init__(self, app: App, compiled: list[sphynx.Compiled]) -> None:
        self.app, self.compiled = app, compiled

    def expected(self, model: int, seed: int) -> list[int]:
        network = self.compiled[model]
        found: list[int] = interpret(network.program, network.weights, pixels(seed)[None])[0].tolist()
        return found

    def call(self, method: str, path: str, body: bytes | None = None) -> tuple[int, Any]:
        address = urlsplit(self.app.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
        try:
            connection.request(method, address.path + path, body)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()


@pytest.fixture(scope="module")
def page(authority: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """Two servers in threads, two clients, one page."""
    folder, desks, compiled = tmp_path_factory.mktemp("models"), [], []
    with ExitStack() as opened:
        for number, (name, classes) in enumerate(NAMES.items()):
            program = small_program(name, classes)
            save_program(folder / name, program)
            save_weights(folder / name, program, random_weights(program, seed=number))
            compiled.append(sphynx.Compiled.load(folder / name))
            server = opened.enter_context(
                sphynx.Server(compiled[-1], keys=authority / "server", listen="127.0.0.1:0", state=folder / f"{name}-s")
            )
            watch, keys = Watch(), authority / "alice"
            client = opened.enter_context(
                sphynx.Client(server.address, keys=keys, state=folder / f"{name}-c", observer=watch)
            )
            parties = Parties(client, server.address, name, InTheClear(compiled[-1]))
            desks.append(opened.enter_context(Desk(parties, watch, Bulletin(), lambda: REFERENCE, keep_ready=0)))
        app = App(desks)
        opened.callback(app.close)
        yield Page(app, compiled)


def test_each_network_answers_for_itself(page: Page) -> None:
    assert page.call("GET", "about")[1]["models"] == list(NAMES)
    for model, (name, classes) in enumerate(NAMES.items()):
        assert page.call("GET", f"about?model={model}")[1]["name"] == name
        status, found = page.call("POST", f"ask?model={model}&backend=gmw", png(pixels(3)))
        assert status == 200 and found["integer_logits"] == page.expected(model, 3)
        assert set(found["labels"]) == set(classes)
    assert page.expected(0, 3) != page.expected(1, 3)


@pytest.mark.parametrize("number", ["2", "-1", "x", "0x1", "99999999", "\u0661"])
def test_a_network_that_is_not_there_is_refused(page: Page, number: str) -> None:
    status, said = page.call("GET", f"about?model={quote(number)}")
    assert status == 400 and "is not a valid model number" in said["what"]


@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH")
def test_the_browser_switches_between_them(page: Page, tmp_path: Path) -> None:
    with Browser(tmp_path / "profile") as browser:
        browser.look(390, 844, "light")
        browser.call("Page.navigate", url=page.app.url)
        browser.wait_for("document.querySelectorAll('#samples button').length")
        assert browser.evaluate("[...document.getElementById('model').options].map((o) => o.text)") == list(NAMES)
        browser.evaluate(DROP % base64.b64encode(png(pixels(5))).decode())
        assert json.loads(browser.wait_for(ANSWER))["integer_logits"] == page.expected(0, 5)
        browser.evaluate(
            "delete document.body.dataset.answer; const chosen = document.getElementById('model');"
            " chosen.value = '1'; chosen.dispatchEvent(new Event('change'))"
        )
        assert json.loads(browser.wait_for(ANSWER))["integer_logits"] == page.expected(1, 5)  # the same picture
        assert browser.evaluate("document.getElementById('about').textContent").startswith("fruits")
        assert browser.evaluate("document.getElementById('model').value") == "1"
        assert browser.evaluate("document.documentElement.scrollWidth") <= 390
        assert browser.complaints == []
