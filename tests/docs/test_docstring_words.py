"""Docstrings are sentences: they begin with what the thing is or does, not with a fragment of another sentence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FRAGMENTS = {"of", "by", "until", "unless", "so", "who", "whose", "those", "where", "what"}
Documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each docstring."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, Documented) and (text := ast.get_docstring(node)) is not None:
            yield node.body[0].lineno, text


def first_word(text: str) -> str:
    """The first word in lower case, without markup around it; a name in backticks is no word."""
    found = re.match(r"[^\w`]*([A-Za-z]*)", text)
    return found[1].lower() if found else ""


def fragments(source: str) -> list[tuple[int, str]]:
    return [(line, text.splitlines()[0]) for line, text in docstrings(source) if first_word(text) in FRAGMENTS]


@pytest.mark.parametrize("folder", ["src/sphynx", "reproduction", "tools", "tests", "benchmarks", "docs", "examples"])
def test_docstrings_begin_with_what_the_thing_is_or_does(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line, text in fragments(path.read_text(encoding="utf-8"))
    ]
    assert not found, f"{len(found)} docstrings begin with a fragment:\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text", ["Of the budget.", "By name, once.", "  *Until* it ends", "So, many", "where\nit is", "What it is"]
)
def test_fragments_are_found_wherever_they_stand(text: str) -> None:
    for source in (f'"""{text}"""', f'class A:\n    """{text}"""', f'async def f():\n    """{text}"""'):
        assert len(fragments(source)) == 1


@pytest.mark.parametrize("text", ["`of(C)` is the total.", "Wait until it ends.", "Solve it.", "", "Offer it."])
def test_sentences_pass(text: str) -> None:
    assert not fragments(f'def f():\n    """{text}"""')
