"""Flags made from the fields of records: a verb's parameter whose type is a record stands for a flag per field.

    @with_record_flags
    def train(design: Path, settings: TrainSettings, output: Output) -> None: ...

    settings: Annotated[DesignSettings, {"out": setting(None, "...")}]   where a flag's default is not the field's

A flag's name, type, default, limits and help are declared in the record alone. Its type is what can be typed of the
field's: a word, a number, a path; `NAME=VALUE`, repeated, for a mapping. A field `quota_bytes` is the flag --quota and
takes 500M or 16G. A field that takes objects only, such as a callback, has no flag, nor has one with `flag=None`.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from sphynx.cli.options import parse_bytes, parse_settings
from sphynx.errors import InputError

# Flags that are not called as their fields are, in any record.
_NAMES = {
    "out": ("--out", "-o"),
    "verbose": ("--verbose", "-v"),
    "quiet": ("--quiet", "-q"),
    "as_json": ("--json",),
    "settings": ("--set",),
    "rank_recipe": ("--rank",),
    "costs": ("--cost",),
}
_TYPED = (bool, int, float, str, Path)
_BYTES = "_bytes"
_UNITS = ((1 << 30, "G"), (1 << 20, "M"), (1, ""))


def with_record_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace the records in a verb's signature with flags; the verb receives them made of what was given."""
    own = inspect.signature(verb, eval_str=True)
    parameters: list[inspect.Parameter] = []
    records: dict[str, tuple[Any, list[_Flag]]] = {}
    for parameter in own.parameters.values():
        record, *replaced = typing.get_args(parameter.annotation) or (parameter.annotation,)
        if dataclasses.is_dataclass(record):
            flags = _flags_of(record, replaced[0] if replaced else {})
            records[parameter.name] = record, flags
            names = {flag.name: flag.names[0] for flag in flags}
            parameters += [flag.parameter(names) for flag in flags]
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    def called(**values: Any) -> None:
        made = {name: _make(record, flags, values) for name, (record, flags) in records.items()}
        verb(**made, **values)

    called.__doc__ = verb.__doc__
    called.__name__ = verb.__name__
    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]  # inspect reads it
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    return called


def meaning_of(record: Any, name: str) -> str:
    return str(next(field.metadata["meaning"] for field in dataclasses.fields(record) if field.name == name))


def typed_as(hint: Any) -> Any:
    """The type of a flag for values of that type; None: it cannot be typed."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    options = tuple(option for option in options if option is not type(None))
    found = next((option for option in options if typing.get_origin(option) is typing.Literal), None)
    if found is None and set(options) == {str, Path}:
        found = Path
    if found is None:
        found = str if str in options else next((option for option in options if option in _TYPED), None)
    if found is None and any(_is_a(Mapping, option) or _is_a(Sequence, option) for option in options):
        return list[str]
    return found


@dataclasses.dataclass(frozen=True)
class _Flag:
    """The flag of a field: how it is declared, and the value that the record takes for what was typed."""

    name: str  # of the field
    field: dataclasses.Field[Any]  # the record's, or what replaces it
    hint: Any  # the type of the field, or the one that it is written as

    @property
    def typed(self) -> Any:
        return str if self.in_bytes else typed_as(self.hint)

    @property
    def in_bytes(self) -> bool:
        return self.name.endswith(_BYTES)

    @property
    def names(self) -> tuple[str, ...]:
        if word := self.field.metadata.get("flag"):
            return (f"--{word}",)
        return _NAMES.get(self.name) or (f"--{self.name.removesuffix(_BYTES).replace('_', '-')}",)

    @property
    def default(self) -> Any:
        """The default as it is written; None where the record finds out what is not given."""
        field = self.field
        if "written" in field.metadata:
            return field.metadata["written"]
        if "choose" in field.metadata or field.default_factory is not dataclasses.MISSING or field.default == ():
            return None
        if field.default is dataclasses.MISSING:
            return inspect.Parameter.empty
        if self.in_bytes and field.default is not None:
            size, unit = next((size, unit) for size, unit in _UNITS if field.default % size == 0)
            return f"{field.default // size}{unit}"
        return field.default

    def parameter(self, names: Mapping[str, str]) -> inspect.Parameter:
        """Declare the flag. Its help has the `names` of other fields' flags. A switch left open can be switched off."""
        metadata = self.field.metadata
        option = typer.Option(
            *(f"{name}/--no-{name[2:]}" if self.hint == bool | None else name for name in self.names),
            help=re.sub(r"`(\w+)`", lambda found: names.get(found[1], found[0]), metadata["meaning"]),
            metavar=metadata.get("metavar"),
            min=metadata.get("least"),
            max=metadata.get("most"),
        )
        typed = self.typed | None if self.default is None else self.typed
        kind = inspect.Parameter.KEYWORD_ONLY
        return inspect.Parameter(self.name, kind, default=self.default, annotation=Annotated[typed, option])

    def read(self, given: Any) -> Any:
        """The value that the record takes: a size in bytes, what `parse` makes of a text, a mapping or a tuple."""
        metadata = self.field.metadata
        written_otherwise = self.in_bytes or "written_as" in metadata  # elsewhere auto may be a value: `--teacher auto`
        if given is None or (given == "auto" and written_otherwise and self.field.default is None):
            return None
        if self.in_bytes:
            return parse_bytes(given, f"`{self.name}`")
        if "parse" in metadata:
            try:
                return metadata["parse"](given)
            except InputError as error:
                raise InputError(error.what, where=f"`{self.name}`", remedy=error.remedy) from None
        if isinstance(given, list):
            return parse_settings(given, self.names[0]) if _is_a(Mapping, self.hint) else tuple(given)
        return given


def _flags_of(record: Any, replaced: Mapping[str, dataclasses.Field[Any] | None]) -> list[_Flag]:
    """Make a flag of each field; those `replaced` have another default or meaning as flags, or None for no flag."""
    hints, flags = _hints(record), []
    for own in dataclasses.fields(record):
        field = replaced.get(own.name, own)
        if field is not None and field.metadata.get("flag", "") is not None:
            flags.append(_Flag(own.name, field, field.metadata.get("written_as") or hints[own.name]))
    return [flag for flag in flags if flag.typed is not None]


def _hints(record: Any) -> dict[str, Any]:
    """The types of the fields. Those that only type checkers import, as torch's modules, cannot be typed anyway."""
    unknown: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(record, localns=unknown)
        except NameError as error:
            unknown[str(error.name)] = object


def _make(record: Any, flags: Sequence[_Flag], values: dict[str, Any]) -> Any:
    """The record, of the values that are its flags'; they are taken out of those that are left."""
    given = [(flag, values.pop(flag.name)) for flag in flags]
    # What is not given and has another default than None is left to the record.
    left = [(flag, value) for flag, value in given if value is not None or flag.field.default is None]
    return record(**{flag.name: flag.read(value) for flag, value in left})


def _is_a(kind: type, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    return isinstance(origin, type) and issubclass(origin, kind)
