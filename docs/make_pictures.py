"""Makes the pictures of the pages in docs/images: headless Chromium asks as a user would ask.

python docs/make_pictures.py        (two minutes; needs `chromium` on the PATH, and cores at rest: the times are shown)

    app.webp          the README's: answers, and what the server received of each
    app.png           the page with an answer, compared with no protection
    app-phone.png     the page on a phone, dark, after a tap
    film.png          the protocol as a film, and what the server saw
    record.png        the record of an answer
    demo.png          the demonstration's page; and what the README shows of its tables
    app.json          the figures that the pictures show, and the pictures' hashes: a test holds them to the program's
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
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
README_WIDTH, README_MOST_HEIGHT = 838, 400
DESK_WIDTH, DEMO_SIZE = 1280, (840, 1440)
PHONE_SIZE = (390, 844)
ANSWER_COLUMNS = 7  # of the table of answers; that of costs has a column more than the README shows
MARGIN = 16  # of the page, at each side
SHRINK = 3 / 2
PICTURES = ("app.webp", "app.png", "app-phone.png", "film.png", "record.png")
SAMPLE = "[...document.querySelectorAll('#samples button')].find((b) => b.textContent === '%s')"
ANSWERED = "document.body.dataset.answer || ''"
READY = "/^Bundles ready: 2 /.test(document.getElementById('bundles').textContent)"
# What the README's picture leaves out, so that it is low.
HIDE = """
document.querySelectorAll(
  "h2, #bars, #costs, #after, #ready, #layers-part, #side, .histogram, .squares .small, figcaption span"
).forEach((part) => part.style.setProperty("display", "none", "important"));
document.querySelector(".squares").style.gridTemplateColumns = "repeat(4, 1fr)";
document.querySelectorAll(".squares figcaption").forEach((part) => (part.style.minHeight = "3rem"));
"""
SHOWN = (
    "Object.fromEntries([...document.querySelectorAll('#costs dt')]"
    ".map((name) => [name.textContent, name.nextSibling.textContent]))"
)
AREA = """
(() => {
  const top = document.getElementById("answer").getBoundingClientRect().top + scrollY;
  const bottom = document.querySelector(".squares").parentElement.getBoundingClientRect().bottom + scrollY;
  return [MARGIN, top, WIDTH, bottom - top];
})()
""".replace("MARGIN", str(MARGIN)).replace("WIDTH", str(README_WIDTH))
FILM = """
(({ left, top, width, height }) => [left + scrollX, top + scrollY, width, height])(
  document.getElementById("film").getBoundingClientRect()
)
"""
GROUND = (243, 245, 249)  # the page's, in the light


class Frame(NamedTuple):
    picture: Image.Image
    seconds: float  # that it is shown


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, Browser(Path(scratch) / "profile") as browser:
        shown = _record_app(browser)
        _record_demo(browser, Path(scratch))
    hashes = {name: hashlib.sha256((IMAGES / name).read_bytes()).hexdigest() for name in PICTURES}
    facts = {"model": MODEL, "backend": "gmw", "shown": shown, "sha256": hashes}
    (IMAGES / "app.json").write_text(json.dumps(facts, indent=2) + "\n")


def _record_app(browser: Browser) -> dict[str, str]:
    """Record the pages of `sphynx app`; return the costs that app.png shows, by their names."""
    app = subprocess.Popen([SPHYNX, "app", "--local", MODEL], stdout=subprocess.PIPE, text=True)
    try:
        assert app.stdout is not None
        address = next(word for line in app.stdout for word in line.split() if word.startswith("http://"))
        _record_readme(browser, address)
        shown = _record_desk(browser, address)
        _record_phone(browser, address)
    finally:
        app.terminate()
        app.wait()
    return shown


def _record_readme(browser: Browser, address: str) -> None:
    _open(browser, address, (README_WIDTH + 2 * MARGIN, 1200))
    _wait_for_samples(browser)
    _ask(browser, SAMPLE % "flower")  # so that the first frame has another picture to compare with
    frames = []
    for sample, seconds in (("clock", 3.0), ("orange", 2.4), ("china", 3.0)):
        _ask(browser, SAMPLE % sample)
        frames.append(Frame(_readme_frame(browser), seconds))
    _ask(browser, "document.getElementById('clear')")
    frames.append(Frame(_readme_frame(browser), 3.0))
    first, *others = [frame.picture for frame in frames]
    durations_ms = [round(1e3 * frame.seconds) for frame in frames]
    first.save(
        IMAGES / "app.webp", save_all=True, append_images=others, duration=durations_ms, loop=0, quality=82, method=6
    )


def _readme_frame(browser: Browser) -> Image.Image:
    browser.evaluate(HIDE)
    picture = Image.open(io.BytesIO(_clipped(browser, AREA))).convert("RGB")
    assert picture.height <= README_MOST_HEIGHT + MARGIN, picture.height  # below the squares there is a margin
    page = Image.new("RGB", (README_WIDTH, README_MOST_HEIGHT), GROUND)
    page.paste(picture, (0, 0))
    return page


def _record_desk(browser: Browser, address: str) -> dict[str, str]:
    _open(browser, address, (DESK_WIDTH, 900))
    _wait_for_samples(browser)
    for what in (SAMPLE % "china", SAMPLE % "clock", "document.getElementById('compare')"):
        _ask(browser, what)
    shown: dict[str, str] = browser.evaluate(SHOWN)
    _shrunk(browser.screenshot(), SHRINK).save(IMAGES / "app.png", optimize=True)
    _record_film(browser)
    record = browser.evaluate("document.getElementById('record').href")
    _open(browser, record, (760, 900))
    browser.wait_for("document.readyState === 'complete'")
    _shrunk(browser.screenshot(), 1).quantize(64, dither=Image.Dither.NONE).save(IMAGES / "record.png", optimize=True)
    return shown


def _record_film(browser: Browser) -> None:
    """Show a message on its way, and below it all bytes that the server received."""
    browser.evaluate("document.getElementById('saw').click(), document.getElementById('speed').value = '-2'")
    browser.evaluate("document.getElementById('play').click()")
    browser.wait_for("/^2 of/.test(document.getElementById('film-says').textContent)")
    _shrunk(_clipped(browser, FILM), SHRINK).save(IMAGES / "film.png", optimize=True)


def _clipped(browser: Browser, area: str) -> bytes:
    left, top, width, height = browser.evaluate(area)
    clip = {"x": left, "y": top, "width": width, "height": height, "scale": 1}
    data = browser.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
    return base64.b64decode(data)


def _record_phone(browser: Browser, address: str) -> None:
    _open(browser, address, PHONE_SIZE, "dark")
    browser.call(
        "Emulation.setEmulatedMedia",
        features=[
            {"name": "prefers-color-scheme", "value": "dark"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ],
    )
    _wait_for_samples(browser)
    _ask(browser, SAMPLE % "sunflower")
    _shrunk(browser.screenshot(whole=False), 1).save(IMAGES / "app-phone.png", optimize=True)


def _ask(browser: Browser, what: str) -> None:
    browser.wait_for(READY)
    browser.evaluate(f"delete document.body.dataset.answer; {what}.click()")
    browser.wait_for(ANSWERED)
    browser.wait_for(READY)


def _wait_for_samples(browser: Browser) -> None:
    browser.wait_for("document.querySelectorAll('#samples button').length")
    browser.wait_for("[...document.querySelectorAll('#samples img')].every((i) => i.complete && i.naturalWidth)")


def _record_demo(browser: Browser, folder: Path) -> None:
    played = subprocess.run([SPHYNX, "demo", "--out", str(folder / "demo")], check=True, text=True, capture_output=True)
    _write_readme(_shortened(played.stderr, played.stdout))
    (page,) = (folder / "demo").glob("*.html")
    _open(browser, page.as_uri(), DEMO_SIZE)
    browser.wait_for("document.readyState === 'complete'")
    picture = _shrunk(browser.screenshot(whole=False), SHRINK)
    picture.quantize(128, dither=Image.Dither.NONE).save(IMAGES / "demo.png", optimize=True)


def _shortened(progress: str, tables: str) -> list[str]:
    """The part of the demonstration for the README: the first two answers of each network, and what they took."""
    said = [line.strip() for line in progress.splitlines()]
    planned, trained, compiled = (next(s for s in said if s.startswith(w)) for w in ("planned", "trained", "compiled"))
    lines, left = [planned, f"{trained}; {compiled}"], 0
    for line in tables.splitlines():
        if line.startswith("┃"):
            left = 3  # and two rows
        if line[:1] in "┃│" and line and left:
            mark, left = line[0], left - 1
            cells = line.strip(mark).split(mark)
            lines.append(mark + mark.join(cells if len(cells) == ANSWER_COLUMNS else [*cells[:6], *cells[7:]]) + mark)
    return lines


def _write_readme(lines: list[str]) -> None:
    file = ROOT / "README.md"
    before, _, rest = file.read_text().partition("    planned:")
    file.write_text(before + "".join(f"    {line}\n" for line in lines) + "\n" + rest.partition("\n\n")[2])


def _open(browser: Browser, address: str, size: tuple[int, int], scheme: str = "light") -> None:
    browser.look(*size, scheme)
    browser.call("Emulation.setScrollbarsHidden", hidden=True)
    browser.call("Page.navigate", url=address)


def _shrunk(png: bytes, by: float) -> Image.Image:
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    size = round(picture.width / by), round(picture.height / by)
    return picture if by == 1 else picture.resize(size, Image.Resampling.LANCZOS)


if __name__ == "__main__":
    main()
