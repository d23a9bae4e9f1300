"""Measures pages at the width of a phone and of a desk: nothing may stick out sideways.

python docs/measure_site.py out/site out/readme.html out/report.html        (needs `chromium`; folders: every page)
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.app.devtools import Browser

WIDTHS = (390, 1280)
# How far the page scrolls sideways, and what sticks out of the window without a part around it that scrolls.
OVERFLOW = """
(() => {
  const wide = document.documentElement.clientWidth;
  const scrolls = (e) =>
    e && e !== document.body &&
    (/auto|scroll|hidden|clip/.test(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
  const out = [...document.querySelectorAll("article *, main *, body > *")].filter((e) => {
    const box = e.getBoundingClientRect();
    const isOut = box.width && box.height && box.right > wide + 1 && box.left < wide;
    return isOut && !scrolls(e);
  });
  const words = (e) => (e.textContent || e.alt || "").trim().slice(0, 40);
  const said = out.slice(0, 3).map((e) => `${e.tagName.toLowerCase()} ${words(e)}`);
  return [document.documentElement.scrollWidth - wide, said];
})()
"""


def overflowing(files: list[Path]) -> list[str]:
    """Name every page that is wider than its window, with what sticks out."""
    found = []
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        browser.call("Emulation.setScrollbarsHidden", hidden=True)
        for width in WIDTHS:
            browser.look(width, 844, "light")
            for file in files:
                browser.call("Page.navigate", url=file.absolute().as_uri())
                browser.wait_for("document.readyState === 'complete'")
                beyond, what = browser.evaluate(OVERFLOW)
                if beyond > 0 or what:
                    found.append(f"{file} at {width}: {beyond} pixels; {'; '.join(what)}")
    return found


def main() -> None:
    given = [Path(name) for name in sys.argv[1:]]
    files = [file for path in given for file in (sorted(path.rglob("*.html")) if path.is_dir() else [path])]
    found = overflowing(files)
    print("\n".join(found) or f"{len(files)} pages at {' and '.join(map(str, WIDTHS))} pixels: nothing sticks out")
    sys.exit(1 if found or not files else 0)


if __name__ == "__main__":
    main()
