"""Prints every text that a user may read: errors with their remedies, help, progress, and other prose in the source.

python docs/make_messages.py > out/messages.txt        (or: make messages)

For reading all of them at once. Grouped by file and kind; {...} stands for a value. A verb's help is its docstring;
other docstrings are not for users and left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

SOURCE = Path(__file__).parents[1] / "src" / "sphynx"
Kind = Literal["error", "help", "text"]
KINDS: tuple[Kind, ...] = ("error", "help", "text")
HELP_CALLS = {"Option", "Argument", "Typer", "setting"}
PROSE = re.compile(r"[A-Za-z{}]['\w{}%,;:.)-]* +[\w({'\"-]")


@dataclass(frozen=True)
class Message:
    path: str
    line: int
    kind: Kind
    text: str
    remedy: str | None = None  # of an error; None where the call does not show it


@cache
def messages(source: Path = SOURCE) -> tuple[Message, ...]:
    files = sorted(source.rglob("*.py"))
    return tuple(
        message
        for path in files
        for message in _in_file(ast.parse(path.read_text()), str(path.relative_to(source.parent)))
    )


def _in_file(tree: ast.Module, path: str) -> Iterator[Message]:
    seen: set[int] = set()  # parts of a text that was taken whole
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                seen.add(id(first.value))
                if path.startswith("sphynx/cli/") and "Example" in str(first.value.value):  # every verb's help has one
                    yield Message(path, first.lineno, "help", ast.get_docstring(node) or "")
        elif isinstance(node, ast.Call) and id(node) not in seen:
            name = _name(node.func)
            if name.endswith("Error") and (given := _arguments(node)):
                remedy = next((text for word, text in given if word == "remedy"), None)
                what = " ".join(text for word, text in given if word == "")
                if remedy is not None or PROSE.search(what):
                    seen.update(id(part) for part in ast.walk(node))
                    yield Message(path, node.lineno, "error", what, remedy)
            elif name in HELP_CALLS:
                for word, text in _arguments(node):
                    if word == "help" or (name == "setting" and PROSE.search(text)):
                        yield Message(path, node.lineno, "help", text)
                seen.update(id(part) for part in ast.walk(node))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant | ast.JoinedStr) and id(node) not in seen:
            text = _text(node)
            seen.update(id(part) for part in ast.walk(node))
            if PROSE.search(text):
                yield Message(path, node.lineno, "text", text)


def _arguments(call: ast.Call) -> list[tuple[str, str]]:
    """(keyword or "", text) of every argument that shows one."""
    given = [("", value) for value in call.args] + [(word.arg or "", word.value) for word in call.keywords]
    return [(word, text) for word, value in given if (text := _text(value))]


def _text(node: ast.AST) -> str:
    """A literal, an f-string, or literals joined by + or if: what is not literal is {...}."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_text(part) if isinstance(part, ast.Constant) else "{...}" for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return (_text(left) or "{...}") + (_text(right) or "{...}")
        case ast.IfExp(body=body, orelse=other):
            return " / ".join(text for part in (body, other) if (text := _text(part)))
        case ast.Call() | ast.Name() | ast.Attribute() | ast.Subscript():
            return "{...}"
    return ""


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def listing() -> str:
    lines: list[str] = []
    path = ""
    for message in sorted(messages(), key=lambda found: (found.path, KINDS.index(found.kind), found.line)):
        if message.path != path:
            path = message.path
            lines += ["", path]
        lines.append(f"  {message.kind:5}  " + "\n         ".join(message.text.splitlines()))
        if message.remedy is not None:
            lines.append(f"         remedy: {message.remedy}")
    return "\n".join(lines[1:]) + "\n"


if __name__ == "__main__":
    print(listing(), end="")
