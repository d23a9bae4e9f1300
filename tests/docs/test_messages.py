"""Messages to users, as docs/make_messages.py lists them: every error has a remedy, and words are plain English."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
# What reads as translated, and what to write instead. Programs' own names (a fault of an injected kind) are not texts.
INSTEAD = {
    r"\b(?:it|that|this|[}'\"\w]+['\"}]) is no (?!longer|better|more)": "is not a valid ...",
    r"are no (?:candidates|positions|numbers)": "are not valid ...",
    r"\bmend(?:s|ed)?\b": "fix",
    r"\bfaults?\b": "error",
    r"\bdear(?:er|est)?\b": "expensive",
    r"\bby (?:gmw|gc|GMW)\b": "using GMW",
    r"\b[Ss]o many\b": "n, this many",
    r"\banew\b": "again",
    r"\b(?:lets?|let) nobody in\b": "admits nobody",
    r"\bor the like\b": "or a similar value",
    r"\bheld against\b": "compared with",
    r"\bwhere absent\b": "if missing",
    r"pip install (?:-U )?'?sphynx\b": "pip install . in a clone: on PyPI `sphynx` is another project",
}
# A page may speak of faults that are injected, and of a module of that name.
ON_PAGES = [pattern for pattern, instead in INSTEAD.items() if instead != "error"]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / name for name in ("README.md", "SECURITY.md", "CHANGELOG.md"))]


@pytest.fixture(scope="module")
def made() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "docs" / "make_messages.py"))


def test_the_list_has_errors_help_and_progress(made: dict[str, Any]) -> None:
    text = made["listing"]()
    for known in (
        "there is no such file",  # an error
        "Print JSON instead of tables.",  # a flag
        "sphynx plan --relu-budget 50k",  # a verb's help
        "passes over the training images",  # a recipe's value
        "Bundles prepared, by program and backend.",  # a metric
    ):
        assert known in text
    (ROOT / "out").mkdir(exist_ok=True)
    (ROOT / "out" / "messages.txt").write_text(text)  # the artifact, to be read through before a release


def test_messages_are_plain(made: dict[str, Any]) -> None:
    texts = [(f"{found.path}:{found.line}", f"{found.text}\n{found.remedy or ''}") for found in made["messages"]()]
    assert len(texts) > 1500
    found = [
        f"{place}: {match[0]!r}, better {instead!r}"
        for place, text in texts
        for pattern, instead in INSTEAD.items()
        for match in re.finditer(pattern, text)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_pages_are_plain(page: Path) -> None:
    text = page.read_text()
    found = [match[0] for pattern in ON_PAGES for match in re.finditer(pattern, text)]
    assert not found, f"{page.name}: {found}"


def test_every_error_of_ours_has_a_remedy_that_is_a_sentence(made: dict[str, Any]) -> None:
    """A remedy begins with a capital letter or a command, and is not empty."""
    bad = [
        f"{found.path}:{found.line}: {found.remedy!r}"
        for found in made["messages"]()
        if found.kind == "error" and found.remedy is not None
        if not re.match(r"[A-Z{]|sphynx |pip |chmod ", found.remedy.strip())
    ]
    assert not bad, "\n".join(bad)
