"""Typed frozen settings from a TOML table: every unknown key, wrong type and bad value reported at once.

@dataclass(frozen=True)
class Recipe:
    epochs: int = 600

read_settings(Recipe, tomllib.loads(text), where="recipe.toml")
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar

from sphynx.errors import InputError, join_faults

Settings = TypeVar("Settings")


def read_settings(kind: type[Settings], table: Mapping[str, Any], *, where: str) -> Settings:
    """Builds the dataclass `kind` from a table. A class may add `faults()`, which returns what is wrong with values."""
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    faults = [f"unknown key {key!r}" for key in table if key not in fields]
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in table:
            try:
                values[name] = _converted(hints[name], table[name])
            except ValueError as error:
                faults.append(f"{name} = {table[name]!r}: {error}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            faults.append(f"{name} is missing")
    if not faults:
        settings = kind(**values)
        faults = list(getattr(settings, "faults", list)())
        if not faults:
            return settings
    raise InputError(join_faults(faults), where=where, remedy=f"Known keys are {', '.join(fields)}.")


def _converted(hint: Any, value: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        if value not in arguments:
            raise ValueError(f"expected one of {', '.join(map(str, arguments))}")
        return value
    if origin in (typing.Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        for option in arguments:
            if option is not type(None):
                return _converted(option, value)
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ValueError("expected a list")
        return tuple(_converted(arguments[0], item) for item in value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, hint) or (hint in (int, float) and isinstance(value, bool)):
        raise ValueError(f"expected {hint.__name__}")
    return value
