"""The documentation site names every page, and what is built is checked for parts from other hosts.

Building it takes half a minute and is left to `make docs-site`.
"""

import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import sphynx

ROOT = Path(__file__).parents[2]
FROM_THE_ROOT = {"CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}


def named(entry: Any) -> Iterator[str]:
    if isinstance(entry, str):
        yield entry
    for part in entry.values() if isinstance(entry, dict) else entry if isinstance(entry, list) else ():
        yield from named(part)


def test_the_navigation_names_every_page_once() -> None:
    pages = list(named(yaml.safe_load((ROOT / "mkdocs.yml").read_text())["nav"]))
    there = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert len(pages) == len(set(pages))
    assert set(pages) == there | FROM_THE_ROOT


def test_the_python_reference_has_every_public_name_once() -> None:
    page = (ROOT / "docs" / "python-reference.md").read_text()
    names = re.findall(r"^::: sphynx\.(\w+)$", page, re.MULTILINE)
    assert sorted(names) == sorted(sphynx.__all__)


@pytest.mark.parametrize(
    ("html", "parts"),
    [
        ('<a href="https://example.org">a link to follow</a><img src="images/app.png">', 0),
        ('<script src="https://cdn.example.org/a.js"></script>', 1),
        ('<link rel="stylesheet" href="//fonts.example.org/a.css"><img src="http://example.org/a.png">', 2),
    ],
)
def test_parts_from_other_hosts_are_found(html: str, parts: int, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(html)
    (tmp_path / "site.css").write_text("body { background: url(a.png) }")
    foreign_parts = runpy.run_path(str(ROOT / "docs" / "check_site.py"))["foreign_parts"]
    assert len(foreign_parts(tmp_path)) == parts
    (tmp_path / "site.css").write_text("@font-face { src: url(https://example.org/a.woff2) }")
    assert len(foreign_parts(tmp_path)) == parts + 1
