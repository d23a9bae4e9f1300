"""Flags that many verbs have are the same in all of them."""

from collections.abc import Iterator
from typing import Any

import typer

from sphynx.cli.main import app


def options(group: Any, context: typer.Context) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        inside = typer.Context(command, info_name=name, parent=context)
        if hasattr(command, "list_commands"):
            yield from options(command, inside)
        else:
            yield from ((inside.command_path, parameter) for parameter in command.get_params(inside))


def named(*names: str) -> list[tuple[str, Any]]:
    root = typer.main.get_command(app)
    found = options(root, typer.Context(root, info_name="sphynx"))
    return [(verb, option) for verb, option in found if set(names) & set(option.opts)]


def test_json_is_a_flag_that_prints() -> None:
    found = named("--json")
    assert len(found) > 10
    assert [verb for verb, option in found if not option.is_flag] == []


def test_what_is_written_goes_to_out() -> None:
    found = named("-o", "--out", "--output")
    assert len(found) > 10
    assert [verb for verb, option in found if set(option.opts) != {"-o", "--out"}] == []
