"""Flags made from the fields of a record: a verb's parameter whose type is a record stands for a flag per field.

    @with_record_flags
    def train(design: Path, settings: TrainSettings, output: Output) -> None: ...

    settings: Annotated[DesignSettings, {"out": setting(None, "...")}]   where a flag's default is not the field's

A field's flag has its name, default, least value and meaning. Its type is what can be typed of the field's: a word, a
number, a path; `NAME=VALUE`, repeated, for a mapping. A field that takes objects only, such as a callback, has no flag.
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

from sphynx.cli.options import parse_settings

# Flags that are not called as their fields are.
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


def with_record_flags(verb: Callable[..., None]) -> Callable[..., None]:
    """Replace the records in a verb's signature with flags; the verb receives them made of what was given."""
    own = inspect.signature(verb, eval_str=True)
    parameters: list[inspect.Parameter] = []
    records: dict[str, Any] = {}
    for parameter in own.parameters.values():
        record, *replaced = typing.get_args(parameter.annotation) or (parameter.annotation,)
        if dataclasses.is_dataclass(record):
            records[parameter.name] = record
            parameters += _record_flags(record, replaced[0] if replaced else {})
        else:
            parameters.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    def called(**values: Any) -> None:
        made = {name: _make(record, values) for name, record in records.items()}
        verb(**made, **values)

    called.__doc__ = verb.__doc__
    called.__name__ = verb.__name__
    called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {p.name: p.annotation for p in parameters}
    return called


def meaning_of(record: Any, name: str) -> str:
    return str(next(field.metadata["meaning"] for field in dataclasses.fields(record) if field.name == name))


def _record_flags(record: Any, replaced: Mapping[str, dataclasses.Field[Any] | None]) -> list[inspect.Parameter]:
    """Make a flag of each field; those `replaced` have another default or meaning as flags, or None for no flag."""
    hints = _hints(record)
    found = {field.name: (field, typed_as(hints[field.name])) for field in dataclasses.fields(record)}
    flags = ((name, replaced.get(name, field), typed) for name, (field, typed) in found.items())
    return [_parameter(name, field, typed) for name, field, typed in flags if field is not None and typed is not None]


def typed_as(hint: Any) -> Any:
    """The type of a flag for values of that type; None: it cannot be typed."""
    options = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
    optional, options = type(None) in options, tuple(option for option in options if option is not type(None))
    found = next((option for option in options if typing.get_origin(option) is typing.Literal), None)
    if found is None and set(options) == {str, Path}:
        found = Path
    if found is None:
        found = str if str in options else next((option for option in options if option in _TYPED), None)
    if found is None and any(_is_many(option) for option in options):
        return list[str] | None
    return found if found is None or not optional else found | None


def _is_many(option: Any) -> bool:
    origin = typing.get_origin(option)
    return isinstance(origin, type) and issubclass(origin, Mapping | Sequence)


def _make(record: Any, values: dict[str, Any]) -> Any:
    """The record, of the values that are its flags'; they are taken out of those that are left."""
    hints, chosen = _hints(record), {}
    for field in dataclasses.fields(record):
        if field.name in values:
            value = values.pop(field.name)
            origin = typing.get_origin(hints[field.name])
            if isinstance(origin, type) and issubclass(origin, Mapping):
                value = parse_settings(value, flag_names(field.name)[0])
            elif isinstance(origin, type) and issubclass(origin, Sequence):
                value = tuple(value or ())
            chosen[field.name] = value
    return record(**chosen)


def _hints(record: Any) -> dict[str, Any]:
    """The types of the fields. Those that only type checkers import, as torch's modules, cannot be typed anyway."""
    unknown: dict[str, Any] = {}
    while True:
        try:
            return typing.get_type_hints(record, localns=unknown)
        except NameError as error:
            unknown[str(error.name)] = object


def flag_names(name: str) -> tuple[str, ...]:
    return _NAMES.get(name) or (f"--{name.replace('_', '-')}",)


def _parameter(name: str, field: dataclasses.Field[Any], typed: Any) -> inspect.Parameter:
    default = None if field.default_factory is not dataclasses.MISSING or field.default == () else field.default
    meaning = re.sub(r"`([a-z_]+)`", lambda found: flag_names(found[1])[0], field.metadata["meaning"])
    option = typer.Option(*flag_names(name), min=field.metadata.get("least"), help=meaning)
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=inspect.Parameter.empty if default is dataclasses.MISSING else default,
        annotation=Annotated[typed, option],
    )
