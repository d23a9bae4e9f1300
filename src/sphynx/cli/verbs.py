"""Every verb of the command line, by name: for the reference page, and to hold what verbs have in common."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Iterator
from typing import Any

import typer

from sphynx.cli.main import app
from sphynx.cli.wording import commands_within


def verbs() -> Iterator[tuple[str, Any, typer.Context]]:
    """Name as typed, command, and the context that its help is made in."""
    root = typer.main.get_command(app)
    for command, context in commands_within(root, typer.Context(root, info_name="sphynx")):
        yield context.command_path, command, context


def kind_of(command: Any, parameter: Any) -> Any:
    """The type of a flag's value, as its verb declares it."""
    return typing.get_type_hints(inspect.unwrap(command.callback))[parameter.name]


def choices_of(command: Any, parameter: Any) -> tuple[str, ...]:
    """The words that a flag takes, where it takes no others."""
    kind = kind_of(command, parameter)
    literals = [part for part in (kind, *typing.get_args(kind)) if typing.get_origin(part) is typing.Literal]
    return tuple(map(str, typing.get_args(literals[0]))) if literals else ()
