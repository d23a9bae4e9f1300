"""Results as frozen values with a JSON round trip: a field is a key.

    @dataclass(frozen=True)
    class Score(Record):
        accuracy: float
        images: int = 0

    Score.from_json(score.to_json(), where="score.json") == score

Files outlive the version that wrote them. A key that this version does not know is left out when a file is read, a
missing one takes the field's default. What is missing without a default, or is of another type, is named, all at once.
A field that is None by default is written only where it has a value.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from sphynx.errors import InputError, join_faults

_WORDS = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


class Record:
    """A base for frozen dataclasses. What a subclass's `to_json` adds, such as a derived value, reading leaves out
    again."""

    def to_json(self) -> dict[str, Any]:
        fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(self)  # type: ignore[arg-type]  # a dataclass, as its contract says
        values = ((field, getattr(self, field.name)) for field in fields)
        return {field.name: as_json(value) for field, value in values if value is not None or field.default is not None}

    @classmethod
    def from_json(cls, data: Any, where: str = "") -> Self:
        try:
            read: Self = _read(cls, data)
            return read
        except ValueError as error:
            name = where or f"the JSON of a {cls.__name__}"
            raise InputError(str(error), where=name, remedy="Make the file again.") from None


def fingerprint(*values: Any) -> str:
    """A short hash of JSON values: what a checkpoint, or a file of weights, belongs to."""
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def as_json(value: Any) -> Any:
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Mapping):
        return {key: as_json(item) for key, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    return [as_json(item) for item in value] if isinstance(value, list | tuple) else value


def converted(hint: Any, value: Any) -> Any:
    """A JSON or TOML value as the type that the hint asks for. ValueError says what was expected."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint is Any:
        return value
    if origin is typing.Literal:
        if value not in arguments:
            raise ValueError(f"expected one of {', '.join(map(str, arguments))}")
        return value
    if origin in (typing.Union, types.UnionType):
        if any(isinstance(value, option) for option in arguments if isinstance(option, type)):
            return value
        for option in arguments:
            if option is not type(None):
                return converted(option, value)
    if _is_named_tuple(hint):
        names, hints = hint._fields, typing.get_type_hints(hint)
        if not isinstance(value, (list, tuple)) or len(value) != len(names):
            raise ValueError(f"expected [{', '.join(names)}]")
        return hint(*(converted(hints[name], item) for name, item in zip(names, value, strict=True)))
    if origin is tuple:
        if not isinstance(value, (list, tuple)):
            raise ValueError("expected a list")
        return tuple(_entry(arguments[0], number, item) for number, item in enumerate(value))
    if origin is not None and issubclass(origin, Mapping):
        if not isinstance(value, Mapping):
            raise ValueError("expected an object")
        return {str(key): converted(arguments[1], item) for key, item in value.items()}
    if isinstance(value, hint):
        if hint in (int, float) and isinstance(value, bool):
            raise ValueError(f"expected {_WORDS[hint]}")
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ValueError("expected a number that fits a float") from None
    if hint is Path and isinstance(value, str):
        return Path(value)
    if issubclass(hint, Record):
        return _read(hint, value)
    if hasattr(hint, "from_json"):
        return hint.from_json(value)
    raise ValueError(f"expected {_WORDS.get(hint, hint.__name__)}")


def _is_named_tuple(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields")


def _entry(hint: Any, number: int, item: Any) -> Any:
    try:
        return converted(hint, item)
    except ValueError as error:
        raise ValueError(f"entry {number}: {error}") from None


def _read(kind: Any, data: Any) -> Any:
    return kind(**read_fields(kind, data))


def read_fields(kind: Any, data: Any) -> dict[str, Any]:
    """The values for the fields of a dataclass. ValueError names all that is missing or of another type."""
    if not isinstance(data, Mapping):
        raise ValueError("expected an object")
    hints, values, faults = typing.get_type_hints(kind), dict[str, Any](), list[str]()
    for field in dataclasses.fields(kind):
        if field.name in data:
            try:
                values[field.name] = converted(hints[field.name], data[field.name])
            except ValueError as error:
                faults.append(f"{field.name}: {error}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            faults.append(f"{field.name} is missing")
    if faults:
        raise ValueError(join_faults(faults))
    return values
