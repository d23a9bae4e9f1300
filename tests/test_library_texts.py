"""The library names parameters: no text outside `cli` names a flag, except in a command such as `sphynx compile`."""

import ast
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sphynx
from sphynx.cli.verbs import verbs
from sphynx.cli.wording import PARAMETER

SOURCE = Path(__file__).parents[1] / "src" / "sphynx"
# --flag or -f, not the --colour of a style sheet.
FLAG = re.compile(r"(?<![\w{}-])(?<!var\()(?:--[a-z][a-z-]*(?!: #)\b|-[a-z]\b(?!-))")
_WORD = r"[A-Za-z0-9_./{}=:-]*[A-Za-z0-9_/{}]"
_VERB = r"sphynx [a-z]+(?: [a-z]+(?![\w./-]))?|ray start|pip install|python -m [a-z{]+"
COMMAND = re.compile(rf"\b(?:{_VERB})(?: (?:--?[a-z][a-z-]*(?: (?!-){_WORD})?|[A-Z{{]{_WORD}|[A-Z]|{_WORD}/{_WORD}))*")

OTHER_WORDS = {"if", "bench", "check"}  # of Python, and verbs


def test_no_text_of_the_library_names_a_flag() -> None:
    found = [f"{place}: {flag!r} in {text!r}" for place, text in library_texts() for flag in flags_in(text)]
    assert not found, f"{len(found)}:\n" + "\n".join(found)


def test_parameters_that_are_named_exist() -> None:
    known = {option.name for _, command, _ in verbs() for option in command.params} | parameters_in_python()
    named = [(place, name) for place, text in library_texts() for name, _ in PARAMETER.findall(text)]
    assert len(named) > 100
    assert not [f"{place}: {name}" for place, name in named if name not in known | OTHER_WORDS]


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("Give --search, or leave `random_cells` out.", ["--search"]),
        ("--ray", ["--ray"]),
        ("Run it again with -o DIR.", ["-o"]),
        ("Make it: sphynx compile {} -o {}/program --derivable. Or give --out.", ["--out"]),
        ("Issue new keys: sphynx keys issue NAME --server HOST, or give --keys.", ["--keys"]),
        ("run sphynx search --reduce-at by itself and design with --cells FILE", ["--cells"]),
        ("sphynx compile runs/{} -o compiled/{}", []),
        ("sphynx plan --family stream --relu-budget BUDGET --classes {} -o design.json.", []),
        (".cell { --page: #ffffff; } fill: var(--page)", []),
        ("{}-epochs, big-endian", []),
    ],
)
def test_commands_may_have_flags_and_other_texts_not(text: str, flags: list[str]) -> None:
    assert flags_in(text) == flags


@cache
def library_texts() -> tuple[tuple[str, str], ...]:
    """Each with its place, of all files outside `cli`."""
    return tuple(
        (f"{path.relative_to(SOURCE)}:{line}", text)
        for path in sorted(SOURCE.rglob("*.py"))
        if SOURCE / "cli" not in path.parents
        for line, text in texts_in(ast.parse(path.read_text()))
    )


def parameters_in_python() -> set[str]:
    """The parameters of everything that `import sphynx` offers."""
    offered = [thing for thing in (getattr(sphynx, name) for name in sphynx.__all__) if callable(thing)]
    methods = [method for thing in offered for _, method in inspect.getmembers(thing, inspect.isfunction)]
    return {name for call in (*offered, *methods) for name in inspect.signature(call).parameters}


def flags_in(text: str) -> list[str]:
    return FLAG.findall(COMMAND.sub("", text))


def texts_in(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every text but docstrings and the words of a process that is started; {} stands for a value."""
    left_out = {id(part) for part in _not_texts(tree)}
    for node in ast.walk(tree):
        if id(node) in left_out:
            continue
        if isinstance(node, ast.JoinedStr):
            left_out |= {id(part) for part in node.values}
            parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
            yield node.lineno, "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def _not_texts(tree: ast.Module) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as docstring):
                yield docstring
            case ast.List(elts=[ast.Attribute(attr="executable") | ast.Constant(value="git"), *words]):
                yield from words
