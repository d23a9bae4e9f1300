"""Every verb of the command line, by name: for the reference page, and to hold what verbs have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from sphynx.cli.main import app


def verbs() -> Iterator[tuple[str, Any, typer.Context]]:
    """Name as typed, command, and the context that its help is made in."""
    root = typer.main.get_command(app)
    return _within(root, typer.Context(root, info_name="sphynx"))


def _within(group: Any, context: typer.Context) -> Iterator[tuple[str, Any, typer.Context]]:
    """Groups are walked, not named: by itself one lists what it has, or shows its help."""
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inside = typer.Context(command, info_name=name, parent=context)
        if hasattr(command, "list_commands"):
            yield from _within(command, inside)
        else:
            yield inside.command_path, command, inside
