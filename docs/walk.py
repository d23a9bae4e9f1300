"""Walks as a stranger does: from the README's top to an answer on the page, every command and click with its time.

python docs/walk.py [-o walk.md] [--pictures FOLDER]     (ten minutes, most of them installing; needs `chromium`)

A fresh clone, with a home folder and an environment of its own. The commands are the README's; clicks are a mouse's,
at the middle of what can be seen. What the page shows is read from it, on a desk's window and on a phone's.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.app.devtools import Browser

DEMO, PAGE = "make demo", ".venv/bin/sphynx app --open"
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
SAMPLE = "document.querySelector('#samples button')"
MIDDLE = """
(async () => {
  const found = %s;
  found.scrollIntoView({ block: "center", behavior: "instant" });
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const { left, top, width, height } = found.getBoundingClientRect();
  const [x, y] = [left + width / 2, top + height / 2];
  return [x, y, found.contains(document.elementFromPoint(x, y))];
})()
"""
TEXT = "document.getElementById('%s').innerText"
SEEN = (
    "(({ top, bottom }) => top >= 0 && bottom <= innerHeight)(document.querySelector('.asked').getBoundingClientRect())"
)


@dataclass
class Walk:
    pictures: Path
    commit: str = ""
    steps: list[tuple[str, str, float]] = field(default_factory=list)

    def keep(self, does: str, sees: str, seconds: float) -> None:
        self.steps.append((does, " ".join(sees.split()), seconds))
        print(f"{seconds:8.1f} s  {does}: {self.steps[-1][1]}", flush=True)

    def picture(self, name: str, png: bytes) -> None:
        self.pictures.mkdir(parents=True, exist_ok=True)
        (self.pictures / f"{name}.png").write_bytes(png)

    def to_text(self) -> str:
        cores, load = os.cpu_count(), os.getloadavg()[2]
        lines = [
            f"From the README's top to an answer, at {self.commit}: {cores} {platform.machine()} cores, with a load of",
            f"{load:.1f} over the last 15 minutes, the walk's own included.",
            "",
            "| what the stranger does | what is seen | seconds | since the start |",
            "|---|---|---|---|",
        ]
        total = 0.0
        for does, sees, seconds in self.steps:
            total += seconds
            lines.append(f"| {does} | {sees.replace('|', '/')} | {seconds:.1f} | {total:.0f} |")
        return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Walk from the README's top to an answer on the page.")
    parser.add_argument("-o", "--out", type=Path, help="write the steps here, as a table")
    parser.add_argument("--pictures", type=Path, default=ROOT / "out" / "walk", help="keep what the page shows here")
    asked = parser.parse_args()
    signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a shell's background job ignores it, and its children too
    walk = Walk(asked.pictures)
    with tempfile.TemporaryDirectory(prefix="sphynx-walk-") as folder:
        _walk(walk, Path(folder))
    if asked.out:
        asked.out.write_text(walk.to_text())


def _walk(walk: Walk, folder: Path) -> None:
    clone, home = folder / "sphynx", folder / "home"
    home.mkdir()
    began = time.monotonic()
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)
    walk.commit = _said(["git", "-C", str(clone), "rev-parse", "--short=12", "HEAD"])
    readme = (clone / "README.md").read_text()
    assert f"    {DEMO} " in readme and f"`{PAGE}`" in readme, "the README's top has other commands"
    walk.keep(
        "`git clone`", f"{len(readme.splitlines())} lines of README; its first command is `{DEMO}`", _since(began)
    )
    env = {**os.environ, "HOME": str(home), "BROWSER": f"{_opener(folder)} %s"}
    env.pop("VIRTUAL_ENV", None)
    began = time.monotonic()
    install = subprocess.run(["make", ".venv/.installed"], cwd=clone, env=env, capture_output=True, text=True)
    assert install.returncode == 0, install.stderr[-4000:]
    walk.keep(f"`{DEMO}`: it installs", "a new `.venv`", _since(began))
    began = time.monotonic()
    demo = subprocess.run(DEMO.split(), cwd=clone, env=env, capture_output=True, text=True)
    assert demo.returncode == 0, demo.stderr[-4000:]
    answered = [line for line in demo.stdout.splitlines() if line.endswith("yes │") or "yes   │" in line]
    walk.keep("it plays", f"{len(answered)} private answers; last line: {demo.stdout.splitlines()[-1]}", _since(began))
    began = time.monotonic()
    with _app(clone, env, folder) as address:
        walk.keep(f"`{PAGE}`", "the browser opens the page", _since(began))
        for name, size in SIZES.items():
            with Browser(folder / f"profile-{name}") as browser:
                _visit(walk, browser, address, name, size)


def _opener(folder: Path) -> Path:
    """Make a browser that keeps the address that it was started with."""
    script = folder / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > "{folder}/opened.new"\nmv "{folder}/opened.new" "{folder}/opened"\n')
    script.chmod(0o755)
    return script


@contextmanager
def _app(clone: Path, env: dict[str, str], folder: Path) -> Iterator[str]:
    """Start the page, and yield what the browser was started with; Ctrl-C ends it."""
    app = subprocess.Popen(PAGE.split(), cwd=clone, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        while not (folder / "opened").exists():
            assert app.poll() is None, "the page ended"
            time.sleep(0.05)
        yield (folder / "opened").read_text().strip()
        app.send_signal(signal.SIGINT)
        assert app.wait(60) == 0, "Ctrl-C did not stop it"
    finally:
        if app.poll() is None:
            app.kill()


def _visit(walk: Walk, browser: Browser, address: str, name: str, size: tuple[int, int]) -> None:
    browser.look(*size, "light")
    began = time.monotonic()
    browser.call("Page.navigate", url=address)
    browser.wait_for("location.protocol === 'http:' && document.querySelectorAll('#samples button').length > 0")
    browser.wait_for("[...document.querySelectorAll('#samples img')].every((i) => i.complete && i.naturalWidth)")
    walk.keep(f"looks, on a {name}", browser.evaluate("document.querySelector('.lead').innerText"), _since(began))
    walk.picture(f"{name}-1-before", browser.screenshot(whole=False))
    sample = browser.evaluate(f"{SAMPLE}.innerText")
    began = time.monotonic()
    _click(browser, SAMPLE)
    browser.wait_for("document.body.dataset.answer || ''")
    seen = f"{browser.evaluate(TEXT % 'verdict')}. {browser.evaluate(TEXT % 'status')}"
    walk.keep(f"clicks the first picture, {sample}", seen, _since(began))
    browser.wait_for(SEEN)  # it is scrolled to
    walk.picture(f"{name}-2-answer", browser.screenshot(whole=False))
    began = time.monotonic()
    browser.evaluate("delete document.body.dataset.answer")
    _click(browser, "document.getElementById('compare')")
    browser.wait_for("document.body.dataset.answer || ''")
    walk.keep("clicks *Compare with no protection*", browser.evaluate(TEXT % "side-says"), _since(began))
    browser.wait_for("!document.getElementById('after').hidden")
    began = time.monotonic()
    _click(browser, "document.getElementById('play')")
    browser.wait_for("document.body.dataset.filmed || ''")
    walk.keep("clicks *Play*", browser.evaluate(TEXT % "film-says"), _since(began))
    began = time.monotonic()
    _click(browser, "document.getElementById('saw')")
    walk.keep("clicks *What the server saw*", browser.evaluate(TEXT % "saw-says"), _since(began))
    walk.picture(f"{name}-3-whole", browser.screenshot())
    began = time.monotonic()
    record = browser.evaluate("document.getElementById('record').href")
    _click(browser, "document.getElementById('record')")
    browser.call("Page.navigate", url=record)  # the new tab's
    browser.wait_for("document.readyState === 'complete' && document.title.startsWith('Record')")
    walk.keep("clicks *Record to print*", browser.evaluate("document.querySelector('h1').innerText"), _since(began))
    walk.picture(f"{name}-4-record", browser.screenshot())
    assert browser.complaints == [], browser.complaints


def _click(browser: Browser, what: str) -> None:
    """Press the mouse where a person would: at the middle of what is visible there."""
    x, y, is_visible = browser.evaluate(MIDDLE % what)
    assert is_visible, f"{what} is covered"
    for kind in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


def _since(began: float) -> float:
    return time.monotonic() - began


def _said(command: list[str]) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
