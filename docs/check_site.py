"""Whether the built site can be read, and without a network: no page, style or script loads anything from elsewhere,
and no fence of a code block is left as text, as the site's Markdown does with one of an unknown language.

python docs/check_site.py out/site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path

LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "video": "src", "link": "href"}


class Page(HTMLParser):
    """Collects what a browser would load from another host. Links that a reader may follow are not among it."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        address = dict(attrs).get(LOADED.get(tag, "")) or ""
        if address.startswith(("http:", "https:", "//")):
            self.foreign.append(f"<{tag}> {address}")


def foreign_parts(site: Path) -> list[str]:
    found = []
    for file in sorted(site.rglob("*.html")):
        page = Page()
        page.feed(file.read_text())
        found += [f"{file.relative_to(site)}: {part}" for part in page.foreign]
    for file in sorted(site.rglob("*.css")):
        if "url(http" in file.read_text() or "url(//" in file.read_text():
            found.append(f"{file.relative_to(site)}: a url() of another host")
    return found


def unread_fences(site: Path) -> list[str]:
    return [
        f"{file.relative_to(site)}: a code block's fence is shown as text"
        for file in sorted(site.rglob("*.html"))
        if "```" in file.read_text()
    ]


def main() -> None:
    site = Path(sys.argv[1])
    pages = len(list(site.rglob("*.html")))
    found = [*foreign_parts(site), *unread_fences(site)]
    print("\n".join(found) or f"{pages} pages, nothing is loaded from elsewhere")
    sys.exit(1 if found or not pages else 0)


if __name__ == "__main__":
    main()
