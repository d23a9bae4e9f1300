"""`sphynx app` as a user has it: a network that comes with Sphynx, a server that is a process, at both widths.

What is said of a small network in a thread elsewhere is said here of the real one: times, pictures that it knows, the
float network beside the private answer, names of layers.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from sphynx.data.sample_pictures import DIGITS_LICENCE, OURS
from sphynx.program.folder import save_program, save_weights
from tests.app.conftest import small_program
from tests.app.devtools import Browser
from tests.program.programs import random_weights

MODEL = "stream-cifar100-12k"
pytestmark = [pytest.mark.slow, pytest.mark.parametrize("width", [390, 1280])]
# Keeps every answer that the page fetches.
LISTEN = """
window.told = [];
window.fetch = new Proxy(window.fetch, {
  async apply(original, self, given) {
    const reply = await original.apply(self, given);
    if (String(given[0]).startsWith("ask")) window.told.push(await reply.clone().json());
    return reply;
  },
});
"""
SAMPLE = "[...document.querySelectorAll('#samples button')].find((b) => b.textContent === '%s')"
TEXT = "document.getElementById('%s').textContent"
COSTS = (
    "Object.fromEntries([...document.querySelectorAll('#costs dt')]"
    ".map((name) => [name.textContent, name.nextSibling.textContent]))"
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("digits") / "digits"
    program = small_program("digits", tuple("123"), channels=1)
    save_program(folder, program)
    save_weights(folder, program, random_weights(program))
    command = [sys.executable, "-m", "sphynx.cli.main", "app", "--local", MODEL, "--local", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as started:
        assert started.stdout is not None
        yield started.stdout.readline().strip()
        started.terminate()


def open_page(browser: Browser, address: str, width: int) -> None:
    browser.look(width, 844, "light")
    browser.call("Page.navigate", url=address)
    browser.wait_for("document.querySelectorAll('#samples button').length && document.body.dataset.ready > '0'")
    browser.evaluate(LISTEN)


def ask(browser: Browser, what: str) -> dict[str, Any]:
    browser.evaluate(f"delete document.body.dataset.answer; {what}.click()")
    browser.wait_for("document.body.dataset.answer || ''")
    return dict(json.loads(browser.evaluate("JSON.stringify(window.told.at(-1))")))


def seconds(text: str) -> float:
    number, unit = text.split(",")[0].split()
    return float(number) * {"s": 1, "ms": 1e-3}[unit]


def test_the_answer_and_its_times_are_those_that_the_program_told(address: str, browser: Browser, width: int) -> None:
    open_page(browser, address, width)
    for name in ("orange", "sunflower"):
        found = ask(browser, SAMPLE % name)
        assert found["labels"][0] == name
        assert browser.evaluate(TEXT % "verdict") == f"{name}, {100 * found['probabilities'][0]:.0f} %"
        costs = browser.evaluate(COSTS)
        for shown, told in (("the answer took", "online_seconds"), ("prepared before", "offline_seconds")):
            assert seconds(costs[shown]) == pytest.approx(found[told], rel=0.01)
        assert costs["the answer took"] in browser.evaluate(TEXT % "status")
        assert costs["round trips"] == str(found["online_rounds"])
    layers = browser.evaluate(
        "[...document.querySelectorAll('#layers .words span:first-child')].map((s) => s.innerText)"
    )
    browser.evaluate("document.getElementById('layers-part').open = true")
    assert len(layers) > 5 and not [name for name in layers if re.search(r"[._\[]", name)]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.complaints == []


def test_samples_are_things_that_the_network_knows_with_their_licences(
    address: str, browser: Browser, width: int
) -> None:
    open_page(browser, address, width)
    shown = browser.evaluate("[...document.querySelectorAll('#samples button')].map((b) => b.textContent)")
    classes = browser.evaluate(TEXT % "classes").split(", ")
    assert len(classes) == 100 and "pine tree" in classes and not [name for name in classes if "_" in name]
    assert len(set(shown) & set(classes)) >= 5
    assert OURS in browser.evaluate(TEXT % "licences")
    choose = (
        "const chosen = document.getElementById('model'); chosen.value = '1'; chosen.dispatchEvent(new Event('change'))"
    )
    browser.evaluate(choose)
    browser.wait_for("document.querySelector('#samples button').textContent.startsWith('digit')")
    assert DIGITS_LICENCE in browser.evaluate(TEXT % "licences")
    assert browser.complaints == []


def test_in_the_clear_nothing_says_that_the_picture_stays(address: str, browser: Browser, width: int) -> None:
    open_page(browser, address, width)
    ask(browser, SAMPLE % "clock")
    assert "it stays here" in browser.evaluate(TEXT % "picture-says")
    browser.evaluate("document.getElementById('advanced').open = true")
    clear = ask(browser, "document.getElementById('clear')")
    assert clear["by"] == "fp32" and clear["labels"][0] == "clock"
    assert "stays here" not in browser.evaluate("document.querySelector('main').innerText")
    assert "sees the picture" in browser.evaluate(TEXT % "status")
    assert seconds(browser.evaluate(COSTS)["one pass in fp32, by torch"]) == pytest.approx(
        clear["clear_seconds"], rel=0.01
    )
    browser.evaluate("document.getElementById('clear').checked = false")  # the browser keeps it for the next page


def test_the_private_answer_stands_beside_that_of_the_float_network(address: str, browser: Browser, width: int) -> None:
    open_page(browser, address, width)
    ask(browser, SAMPLE % "pear")
    found = ask(browser, "document.getElementById('compare')")
    assert found["clear"]["equal"] is True and found["clear"]["fp32"]["labels"][0] == found["labels"][0]
    rows = browser.evaluate("[...document.querySelectorAll('#side-rows tr')].map((row) => row.innerText)")
    assert len(rows) == 3 and "fp32" in rows[1] and "only you" in rows[0]
    says = browser.evaluate(TEXT % "side-says")
    assert "equals that of the integers bit for bit" in says and re.search(r"Privacy took [\d.]+ ms", says)
    browser.evaluate("document.getElementById('speed').value = '4'; document.getElementById('play').click()")
    shown = browser.wait_for("document.body.dataset.filmed || ''")
    assert int(shown) == len(found["film"]) >= 2 * found["online_rounds"]
    browser.call("Page.navigate", url=browser.evaluate("document.getElementById('record').href"))
    browser.wait_for("document.readyState === 'complete' && document.title.startsWith('Record')")
    record = browser.evaluate("document.body.innerText")
    for part in (MODEL, found["labels"][0], f"{found['online_bytes']:,}"):
        assert part in record
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    assert browser.complaints == []
