"""Typed frozen settings from a TOML table: every unknown key, wrong type and bad value reported at once; and shelves of
named ones (recipes) that come with the package as TOML files.

@dataclass(frozen=True)
class Recipe:
    epochs: int = 600

read_settings(Recipe, tomllib.loads(text), where="recipe.toml")
"""

from __future__ import annotations

import dataclasses
import json
import re
import tomllib
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Generic, TypeVar

from sphynx.errors import InputError, join_faults

Settings = TypeVar("Settings")


def read_settings(kind: type[Settings], table: Mapping[str, Any], *, where: str, remedy: str = "") -> Settings:
    """Builds the dataclass `kind` from a table. A class may add `faults()`, which returns what is wrong with values.

    `remedy` is for tables that nobody writes by hand; without it what is wrong says what would be right.
    """
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
    raise InputError(join_faults(faults), where=where, remedy=remedy or _remedy(fields, table, faults))


def _remedy(fields: Mapping[str, dataclasses.Field[Any]], table: Mapping[str, Any], faults: Sequence[str]) -> str:
    """The keys only where one is unknown; of the values that the faults name, how the default is written."""
    words = set(re.findall(r"\w+", " ".join(faults)))
    named = [field for name, field in fields.items() if name in words]
    lacking = [field.name for field in named if field.name not in table and field.default is dataclasses.MISSING]
    written = [_as_written(field) for field in named if isinstance(field.default, int | float | str | tuple | None)]
    sentences = [
        f"Known keys are {', '.join(fields)}." if any(key not in fields for key in table) else "",
        f"Add {', '.join(lacking)}." if lacking else "",
        f"Write {', '.join(written)} (the default) or the like." if written else "",
    ]
    return " ".join(filter(None, sentences)) or "Give values as the message says."


def _as_written(field: dataclasses.Field[Any]) -> str:
    return f"no {field.name}" if field.default is None else f"{field.name} = {json.dumps(field.default)}"  # as in TOML


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
        try:
            return float(value)
        except OverflowError:
            raise ValueError("expected a number that fits a float") from None
    if not isinstance(value, hint) or (hint in (int, float) and isinstance(value, bool)):
        raise ValueError(f"expected {hint.__name__}")
    return value


@dataclass(frozen=True)
class Shelf(Generic[Settings]):
    """Recipes of one stage: PACKAGE/recipes/PREFIX-NAME.toml. A recipe is asked for by name or by a file's path."""

    kind: type[Settings]
    package: str
    stage: str  # as messages call it
    prefix: str = ""

    def names(self) -> list[str]:
        """As files are called: with the prefix, so that no two shelves have a name in common."""
        folder = resources.files(self.package) / "recipes"
        found = (file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))
        return sorted(name for name in found if name.startswith(self.prefix))

    def text(self, name_or_path: str) -> str:
        """The TOML. A name may leave out the prefix."""
        for name in (name_or_path, self.prefix + name_or_path):
            if name in self.names():
                return (resources.files(self.package) / "recipes" / f"{name}.toml").read_text()
        try:
            return Path(name_or_path).read_text()
        except (OSError, UnicodeDecodeError):
            short = ", ".join(name.removeprefix(self.prefix) for name in self.names())
            raise InputError(
                f"there is no {self.stage} recipe of that name and no such file",
                where=name_or_path,
                remedy=f"Use one of {short}, or the path of a TOML file.",
            ) from None

    def load(self, name_or_path: str, overrides: Mapping[str, Any] | None = None) -> Settings:
        try:
            table = tomllib.loads(self.text(name_or_path))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"it is not TOML ({error})", where=name_or_path, remedy="Mend the file.") from None
        return read_settings(self.kind, {**table, **(overrides or {})}, where=f"{self.stage} recipe {name_or_path}")
