"""Prints docs/reference.md: every verb of `sphynx` with its examples and options, as the command line defines them.

python docs/make_reference.py > docs/reference.md        (or: make docs)
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import typer

from sphynx.cli.verbs import choices_of, verbs

HEADER = """# Reference

Every verb with its options. `make docs` writes this page from the command line itself: change help texts there.

Results go to stdout, progress and errors to stderr. Exit codes: 0 done, 1 failed, 2 wrong input. `--json` prints JSON.
"""
ARGUMENTS, OPTIONS = "Arguments", "Options"
PANELS = {ARGUMENTS: 0, OPTIONS: 1}  # then any other, such as a recipe's values


def reference() -> str:
    found = list(verbs())
    contents = "\n".join(f"- [{name}](#{name.replace(' ', '-')})" for name, _, _ in found)
    pages = "\n".join(_page(name, verb, context) for name, verb, context in found)
    return f"{HEADER}\n{contents}\n\n{pages}"


def _page(name: str, verb: Any, context: typer.Context) -> str:
    parameters = [parameter for parameter in verb.get_params(context) if parameter.name != "help"]
    parameters.sort(key=lambda parameter: PANELS.get(_panel(parameter), len(PANELS)))
    parts = [f"## {name}\n", _prose(verb.help), ""]
    for title, members in groupby(parameters, key=_panel):
        rows = [f"| `{_names(verb, parameter)}` | {_meaning(parameter, context)} |" for parameter in members]
        parts += [f"| {title} | |", "|---|---|", *rows, ""]
    return "\n".join(parts)


def _prose(text: str) -> str:
    """The docstring: paragraphs as they are, indented examples as one block of code."""
    paragraphs = []
    for example, lines in groupby(text.split("\n\n"), key=lambda paragraph: paragraph.startswith("  ")):
        if example:
            paragraphs.append("\n".join("    " + " ".join(line.split()) for line in lines))
        else:
            paragraphs += [" ".join(line.split()) for line in lines]
    return "\n\n".join(paragraphs)


def _panel(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return ARGUMENTS
    return getattr(parameter, "rich_help_panel", None) or OPTIONS


def _names(verb: Any, parameter: Any) -> str:
    """Names, and what is chosen from; other types are left out: the words for them change with typer's version."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    names = ", ".join(sorted(parameter.opts, key=len, reverse=True))
    names = "/".join([names, *parameter.secondary_opts])
    value = parameter.metavar or "\\|".join(choices_of(verb, parameter))
    return f"{names} {value}" if value else names


def _meaning(parameter: Any, context: typer.Context) -> str:
    _, text = parameter.get_help_record(context) or ("", "")
    text = " ".join(text.split()).replace("|", "\\|")
    return text.replace("] [", "; ")  # two brackets side by side would be a link


if __name__ == "__main__":
    print(reference(), end="")
