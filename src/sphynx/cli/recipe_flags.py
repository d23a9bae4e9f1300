"""A flag for every value of a recipe, made from the recipe's own fields, so that none is forgotten."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import Field, fields
from typing import Annotated, Any

import typer

from sphynx.errors import InputError
from sphynx.train.recipe import Recipe

_PANEL = "Recipe values (each overrides the recipe)"


def with_recipe_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """Adds the flags to a verb's signature; the verb receives those that were given as `**overrides`."""
    own = inspect.signature(verb, eval_str=True)
    named = [p for p in own.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    hints = typing.get_type_hints(Recipe)
    flags = [_parameter(setting, hints[setting.name]) for setting in fields(Recipe)]

    def called(**values: Any) -> None:
        overrides = {flag.name: values.pop(flag.name) for flag in flags}
        verb(**values, **recipe_overrides(overrides))

    called.__doc__ = verb.__doc__
    called.__name__ = verb.__name__
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*named, *flags)]
    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    return called


def recipe_overrides(given: Mapping[str, Any]) -> dict[str, Any]:
    """Convert what was given to what TOML would hold: a list is written 30,60,90."""
    hints = typing.get_type_hints(Recipe)
    overrides: dict[str, Any] = {}
    for name, value in given.items():
        if value is None:
            continue
        if typing.get_origin(hints[name]) is tuple:
            try:
                value = [int(part) for part in value.split(",") if part.strip()]
            except ValueError:
                raise InputError(f"{value!r} is not a valid list", where=name, remedy="Write it as 30,60,90.") from None
        overrides[name] = value
    return overrides


def _parameter(setting: Field[Any], hint: Any) -> inspect.Parameter:
    kind = hint if hint in (int, float, bool) else str  # choices and lists are read by the recipe itself
    flag = setting.name.replace("_", "-")
    names = [f"--{flag}/--no-{flag}"] if kind is bool else [f"--{flag}"]
    choices = f" [{'|'.join(typing.get_args(hint))}]" if typing.get_origin(hint) is typing.Literal else ""
    meaning = f"{setting.metadata['meaning']}{choices}"
    option = typer.Option(*names, help=meaning, rich_help_panel=_PANEL, show_default=False)
    return inspect.Parameter(
        setting.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, option]
    )
