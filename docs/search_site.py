"""Searches the built site as a reader does: what a word means comes before where it occurs.

python docs/search_site.py out/site        (needs `chromium` on the PATH)
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.app.devtools import Browser

EXPLAINED = {  # words, and the page that says what it means
    "bundle": "privacy.html",
    "how private": "privacy.html",
    "ReLU": "relu.html",
    "stream": "stream.html",
    "reduce": "reduce.html",
}
TYPE = """
(() => {
  const field = document.querySelector("[data-md-component=search-query]");
  field.focus();
  field.value = %s;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new Event("keyup", { bubbles: true }));
})()
"""
FIRST = "document.querySelector('.md-search-result__item a')?.href ?? ''"


def main() -> None:
    home, wrong = Path(sys.argv[1]).absolute() / "index.html", []
    with tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        browser.look(1280, 844, "light")
        for word, page in EXPLAINED.items():
            browser.call("Page.navigate", url="about:blank")
            browser.call("Page.navigate", url=home.as_uri())
            browser.wait_for("document.readyState === 'complete'")
            browser.evaluate(TYPE % json.dumps(word))
            first = browser.wait_for(FIRST).partition("?")[0].partition("#")[0]
            if not first.endswith(f"/{page}"):
                wrong.append(f"{word}: {first} comes first, not {page}")
    print("\n".join(wrong) or f"{len(EXPLAINED)} words: the page that explains each comes first")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
