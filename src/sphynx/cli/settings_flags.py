"""A flag for every setting of a record: its name, type, default, limits and help are declared there alone.

    @with_settings(ServerSettings, Limits)
    def serve(compiled: str, settings: dict[str, Any], limits: dict[str, Any]) -> None: ...

A field is a flag unless it is declared without one (`flag=None`). A field `quota_bytes` is the flag --quota and takes
500M or 16G.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any

import typer

from sphynx.cli.options import parse_bytes
from sphynx.errors import InputError

_BYTES = "_bytes"
_UNITS = ((1 << 30, "G"), (1 << 20, "M"), (1, ""))


def with_settings(*records: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the flags of records to a verb, whose last parameters receive the values, one mapping for each record."""

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(verb, eval_str=True)
        named = list(own.parameters.values())
        receiving = [parameter.name for parameter in named[len(named) - len(records) :]]
        flags = [_flags_of(record) for record in records]

        def called(**values: Any) -> None:
            given = {
                name: {flag: _value(field, values.pop(flag)) for flag, (field, _) in each.items()}
                for name, each in zip(receiving, flags, strict=True)
            }
            verb(**values, **given)

        called.__doc__, called.__name__ = verb.__doc__, verb.__name__
        kept = [parameter for parameter in named if parameter.name not in receiving]
        parameters = [
            p.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for p in (*kept, *(flag for each in flags for _, flag in each.values()))
        ]
        called.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {p.name: p.annotation for p in parameters}
        return called

    return decorate


def _flags_of(record: type) -> dict[str, tuple[dataclasses.Field[Any], inspect.Parameter]]:
    fields: tuple[dataclasses.Field[Any], ...] = dataclasses.fields(record)
    shown = [field for field in fields if field.metadata.get("flag", "") is not None]
    names = {field.name: _name(field) for field in shown}
    return {field.name: (field, _flag(field, _hint(record, field), names)) for field in shown}


def _hint(record: type, field: dataclasses.Field[Any]) -> Any:
    """A field's type. Only that of a flag is looked up: others may be torch's, which flags do without."""
    written = field.metadata.get("written_as")
    return written or eval(str(field.type), vars(sys.modules[record.__module__]))


def _name(field: dataclasses.Field[Any], hint: Any = None) -> str:
    """The flag as it is typed. A switch that may be left open can be switched off, too."""
    word = field.metadata.get("flag") or field.name.removesuffix(_BYTES).replace("_", "-")
    return f"--{word}/--no-{word}" if hint == bool | None else f"--{word}"


def _flag(field: dataclasses.Field[Any], hint: Any, names: dict[str, str]) -> inspect.Parameter:
    meaning = re.sub(r"`(\w+)`", lambda found: names.get(found[1], found[0]), field.metadata["meaning"])
    option = typer.Option(
        _name(field, hint),
        help=meaning,
        metavar=field.metadata.get("metavar"),
        min=field.metadata.get("least"),
        max=field.metadata.get("most"),
    )
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=_default(field),
        annotation=Annotated[_typed(field, hint), option],
    )


def _typed(field: dataclasses.Field[Any], hint: Any) -> Any:
    """The type of a flag's value: a path, a text, a number, a switch, a choice, or a list of texts."""
    if typing.get_origin(hint) is tuple:
        return list[str] | None
    if field.name.endswith(_BYTES):
        kind: Any = str
    elif isinstance(hint, types.UnionType):
        kind = typing.get_args(hint)[0]
    else:
        kind = hint
    return kind | None if _default(field) is None else kind


def _default(field: dataclasses.Field[Any]) -> Any:
    """The default as it is written; None where what is not given is found out."""
    if "written" in field.metadata:
        return field.metadata["written"]
    if "choose" in field.metadata or field.default == ():
        return None
    if field.default is dataclasses.MISSING:
        return inspect.Parameter.empty
    if field.name.endswith(_BYTES) and field.default is not None:
        size, unit = next((size, unit) for size, unit in _UNITS if field.default % size == 0)
        return f"{field.default // size}{unit}"
    return field.default


def _value(field: dataclasses.Field[Any], given: Any) -> Any:
    """The value that the record takes: a size in bytes, a repeated flag as a tuple, None for auto."""
    if given is None or (given == "auto" and field.default is None):
        return () if field.default == () else None
    if field.name.endswith(_BYTES):
        return parse_bytes(given, f"`{field.name}`")
    if "parse" in field.metadata:
        try:
            return field.metadata["parse"](given)
        except InputError as error:
            raise InputError(error.what, where=f"`{field.name}`", remedy=error.remedy) from None
    return tuple(given) if isinstance(given, list) else given
