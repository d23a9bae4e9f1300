"""The library's messages in the command line's words: a parameter in backticks becomes the flag of the verb that runs.

    `random_cells`            --random-cells
    `random_cells=0`          --random-cells 0
    `skip_bad=True`           --skip-bad
    `stream=False`            --no-stream
    `settings={"epochs": 4}`  --set epochs=4
    `design`                  DESIGN, where it is an argument

A verb's parameters have the names that the library's have, whatever their flags are called. A parameter that the verb
lacks is written as the other verbs do, if they all agree: what is asked privately may ask for other `weight_bits`.
Values of a recipe are flags of `train` alone, so that elsewhere they keep their backticks, as any other word does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import fields
from functools import partial
from typing import Any

import typer

from sphynx.errors import SphynxError
from sphynx.train.recipe import Recipe

PARAMETER = re.compile(r"`([a-z][a-z0-9_]*)(?:=([^`]+))?`")
_RECIPE_VALUES = frozenset(field.name for field in fields(Recipe))

# What the command line asks for in another way than the library.
_ANY_VERB = {"resume=True": "--resume"}


def with_flags(text: str, context: typer.Context) -> str:
    """Write the `parameters` in a text as flags. `context` is the running verb's."""
    return PARAMETER.sub(lambda found: _write(found, context), text)


def write_flags(error: SphynxError, context: typer.Context) -> None:
    """Write the `parameters` in an error as flags."""
    error.reword(partial(with_flags, context=context))


def warner(context: typer.Context) -> Callable[[str], None]:
    """Return what prints the library's warnings on stderr."""
    return lambda why: typer.echo(f"warning: {with_flags(why, context)}", err=True)


def commands_within(group: Any, context: typer.Context) -> Iterator[tuple[Any, typer.Context]]:
    """Every verb with the context that its help is made in. Groups are walked: by itself one only lists what it has."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inside = typer.Context(command, info_name=name, parent=context)
        if hasattr(command, "list_commands"):
            if command.invoke_without_command and "ls" not in command.commands:  # it lists by itself
                yield command, inside
            yield from commands_within(command, inside)
        else:
            yield command, inside


def _write(found: re.Match[str], context: typer.Context) -> str:
    name, value = found[1], found[2]
    if found[0].strip("`") in _ANY_VERB:
        return _ANY_VERB[found[0].strip("`")]
    own = next((one for one in context.command.params if one.name == name), None)
    parameter = own or _of_other_verbs(name, context)
    written = None if parameter is None else _as_typed(parameter, value)
    return found[0] if written is None else written


def _of_other_verbs(name: str, context: typer.Context) -> Any:
    if name in _RECIPE_VALUES:
        return None
    root: Any = context.find_root()  # of a class that some versions of typer bring themselves
    options = [
        option
        for command, _ in commands_within(root.command, root)
        for option in command.params
        if option.name == name and option.param_type_name == "option"
    ]
    return options[0] if len({tuple(option.opts) for option in options}) == 1 else None


def _as_typed(parameter: Any, value: str | None) -> str | None:
    """None: there is no such flag, as for the False of one that can only be given."""
    if parameter.param_type_name == "argument":
        return value or parameter.metavar or parameter.name.upper()
    flag, off = (
        next((name for name in names if name.startswith("--")), None)
        for names in (parameter.opts, parameter.secondary_opts)
    )
    if value is None:
        return flag
    match given := _literal(value):
        case bool():
            return flag if given else off
        case dict():
            return " ".join(f"{flag} {name}={one}" for name, one in given.items())
    return f"{flag} {given}"


def _literal(text: str) -> Any:
    """The value that is written; the text itself where it stands for one, as N does."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text
