"""Pictures of every state of the page at the width of a phone and of a desk, in light and dark, to be looked at.

python docs/make_states.py [out/states]        (two minutes; needs `chromium` on the PATH)

The page is that of `sphynx app` with a server of its own. Answers that this network does not give (a label alone, maps)
are shown by the page's own script. `docs/make_pictures.py` records those that the docs have.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.app.devtools import Browser
from tests.app.test_questions import drop
from tests.app.test_states import show

from sphynx.app.answer import outputs_of

SPHYNX = str(Path(sys.executable).with_name("sphynx"))
MODEL = "stream-cifar100-25k"
SIZES = {"phone": (390, 844), "desk": (1280, 900)}
SAMPLE = "[...document.querySelectorAll('#samples button')].find((b) => b.textContent === '%s')"
READY = (
    "document.querySelectorAll('#samples button').length > 0 && document.body.dataset.ready > '0'"
    " && [...document.querySelectorAll('#samples img')].every((i) => i.complete && i.naturalWidth)"
)
LOADED = "document.readyState === 'complete' && !!document.querySelector('h1')"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "out" / "states"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch, Browser(Path(scratch)) as browser:
        browser.call("Emulation.setScrollbarsHidden", hidden=True)
        for size, (width, height) in SIZES.items():
            for scheme in ("light", "dark"):
                with _app() as (address, stop):
                    for state in _states(browser, address, stop, (width, height, scheme)):
                        file = folder / f"{state}-{size}-{scheme}.png"
                        file.write_bytes(browser.screenshot())
                        beyond = browser.evaluate("document.documentElement.scrollWidth") - width
                        print(file, f"{beyond} pixels too wide" if beyond > 0 else "", flush=True)


@contextmanager
def _app() -> Iterator[tuple[str, Callable[[], None]]]:
    """Yield the page's address, and what stops its program."""
    command = [SPHYNX, "app", "--local", MODEL]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as app:
        assert app.stdout is not None

        def stop() -> None:
            app.terminate()
            app.wait()

        yield app.stdout.readline().strip(), stop
        stop()


def _states(browser: Browser, address: str, stop: Callable[[], None], look: tuple[int, int, str]) -> Iterator[str]:
    """Bring the page into one state after the other, and name it."""
    browser.look(*look)
    _open(browser, f"http://{urlsplit(address).netloc}/an-older-token/", LOADED)
    yield "old-address"
    _open(browser, f"{address}limits", LOADED)
    yield "limits"
    _open(browser, address, READY)
    yield "before"
    _ask(browser, SAMPLE % "orange")
    yield "answer"
    _ask(browser, SAMPLE % "china")
    yield "unsure"
    _ask(browser, SAMPLE % "clock")
    _ask(browser, "document.getElementById('compare')")
    browser.evaluate("document.getElementById('saw').click(), document.getElementById('speed').value = '-2'")
    browser.evaluate("document.getElementById('play').click()")
    browser.wait_for("/^2 of/.test(document.getElementById('film-says').textContent)")
    yield "compared-and-film"
    record = browser.evaluate("document.getElementById('record').href")
    browser.evaluate("document.getElementById('advanced').open = true")
    _ask(browser, "document.getElementById('clear')")
    yield "in-the-clear"
    drop(browser, b"no picture")
    browser.wait_for("document.getElementById('trouble').textContent")
    yield "not-a-picture"
    show(browser, labels=["pine_tree"])
    yield "label-alone"
    maps = np.hypot(*np.mgrid[-8:8, -8:8])[None]
    show(browser, outputs=outputs_of([("mask", maps), ("places", np.arange(6.0))]))
    yield "numbers"
    _open(browser, record, LOADED)
    yield "record"
    _open(browser, address, READY)
    stop()
    browser.wait_for("document.getElementById('trouble').textContent.includes('has stopped')")
    yield "stopped"


def _open(browser: Browser, address: str, until: str) -> None:
    browser.call("Page.navigate", url=address)
    browser.wait_for(until)


def _ask(browser: Browser, what: str) -> None:
    browser.wait_for("document.body.dataset.ready > '0'")
    browser.evaluate(f"delete document.body.dataset.answer; {what}.click()")
    browser.wait_for("document.body.dataset.answer || ''")


if __name__ == "__main__":
    main()
