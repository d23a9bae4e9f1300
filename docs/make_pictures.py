"""Makes docs/images/app.png, app.gif and demo.png: the pages in headless Chromium, asked as a user would ask them.

python docs/make_pictures.py        (a minute; needs `chromium` on the PATH, and cores at rest: the times are shown)
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from PIL import Image

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT))

from tests.app.devtools import Browser

SPHYNX = str(Path(sys.executable).with_name("sphynx"))
MODEL = "stream-cifar100-25k"
APP_SIZE, DEMO_SIZE = (1140, 1470), (840, 1440)  # of the window
SHRINK = 3 / 2
SAMPLE = "[...document.querySelectorAll('#samples button')].find((b) => /%s/.test(b.textContent))"
ANSWERED = "document.body.dataset.answer || ''"
READY = "/^Bundles ready: 2 /.test(document.getElementById('bundles').textContent)"


class Frame(NamedTuple):
    picture: Image.Image
    seconds: float  # that it is shown


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, Browser(Path(scratch) / "profile") as browser:
        _record_app(browser)
        _record_demo(browser, Path(scratch))


def _record_app(browser: Browser) -> None:
    command = [SPHYNX, "app", "--local", MODEL]
    app = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert app.stdout is not None
        address = next(word for line in app.stdout for word in line.split() if word.startswith("http://"))
        _open(browser, address, APP_SIZE)
        browser.wait_for("document.querySelectorAll('#samples button').length")
        browser.wait_for("[...document.querySelectorAll('#samples img')].every((i) => i.complete && i.naturalWidth)")
        browser.wait_for(READY)
        frames = [Frame(_shot(browser), 1.4)]
        for sample, seconds in (("china", 2.4), ("flower", 3.6)):
            _ask(browser, SAMPLE % sample)
            frames.append(Frame(_shot(browser), seconds))
        _few_colours(frames[-1].picture).save(IMAGES / "app.png", optimize=True)
        _ask(browser, "document.getElementById('clear')")
        frames.append(Frame(_shot(browser), 3.2))
    finally:
        app.terminate()
        app.wait()
    first, *others = [_few_colours(frame.picture) for frame in frames]
    durations_ms = [round(1e3 * frame.seconds) for frame in frames]
    first.save(IMAGES / "app.gif", save_all=True, append_images=others, duration=durations_ms, loop=0, optimize=True)


def _ask(browser: Browser, what: str) -> None:
    browser.wait_for(READY)
    browser.evaluate(f"delete document.body.dataset.answer; {what}.click()")
    browser.wait_for(ANSWERED)
    browser.wait_for(READY)


def _record_demo(browser: Browser, folder: Path) -> None:
    subprocess.run([SPHYNX, "demo", "--out", str(folder / "demo")], check=True)
    (page,) = (folder / "demo").glob("*.html")
    _open(browser, page.as_uri(), DEMO_SIZE)
    browser.wait_for("document.readyState === 'complete'")
    _few_colours(_shot(browser)).save(IMAGES / "demo.png", optimize=True)


def _open(browser: Browser, address: str, size: tuple[int, int]) -> None:
    browser.look(*size, "light")
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    browser.call("Page.navigate", url=address)


def _shot(browser: Browser) -> Image.Image:
    window = Image.open(io.BytesIO(browser.screenshot(whole=False))).convert("RGB")
    size = round(window.width / SHRINK), round(window.height / SHRINK)
    return window.resize(size, Image.Resampling.LANCZOS)


def _few_colours(picture: Image.Image) -> Image.Image:
    return picture.quantize(64, dither=Image.Dither.NONE)


if __name__ == "__main__":
    main()
