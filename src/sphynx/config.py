"""Typed frozen settings from a TOML table: every unknown key, wrong type and bad value reported at once; and shelves of
named ones (recipes) that come with the package as TOML files.

@dataclass(frozen=True)
class Recipe:
    epochs: int = setting(600, "passes over the training images")

read_settings(Recipe, tomllib.loads(text), where="recipe.toml")

A stage's record of settings is written once: its fields are the keywords of the stage's function (`Keywords`) and
the flags of its verb (`cli/record_flags.py`), with the meanings that `setting` gives them.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import json
import math
import tomllib
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from importlib import resources
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, overload

from sphynx.errors import InputError, join_faults
from sphynx.record import converted

Settings = TypeVar("Settings")
Given = ParamSpec("Given")
Own = TypeVar("Own")
First = TypeVar("First")
Second = TypeVar("Second")
Result = TypeVar("Result")
NOTHING: Mapping[str, Any] = types.MappingProxyType({})


def described(meaning: str, **more: Any) -> dict[str, Any]:
    """The metadata of a record's field: what it means, and what its flag needs besides, such as its least value."""
    return {"meaning": meaning, **more}


def setting(
    default: Any = dataclasses.MISSING, meaning: str = "", *, factory: Any = dataclasses.MISSING, **more: Any
) -> Any:
    """Declare a field of a settings record: its default, what it means, and what its flag needs besides.

    One that must be given is `field(metadata=described(...))`, which type checkers know to have no default.
    """
    if isinstance(default, dict):
        default, factory = dataclasses.MISSING, default.copy
    return dataclasses.field(default=default, default_factory=factory, metadata=described(meaning, **more))


class Keywords(Generic[Given, Settings]):
    """Lets functions take a record's fields as keywords, which are declared, typed and checked in the record alone.

    @Keywords(ServerSettings).function
    def serve(program: Program, settings: ServerSettings) -> Server: ...

    serve(program, keys="keys/server")

    What stands before the record is positional: one value or two, for a method one besides itself.
    """

    def __init__(self, record: Callable[Given, Settings]) -> None:
        self._record: Any = record

    @overload
    def function(self, work: Callable[[First, Settings], Result]) -> Callable[Concatenate[First, Given], Result]: ...

    @overload
    def function(
        self, work: Callable[[First, Second, Settings], Result]
    ) -> Callable[Concatenate[First, Second, Given], Result]: ...

    def function(self, work: Any) -> Any:
        before = list(inspect.signature(work).parameters.values())[:-1]
        fields = list(inspect.signature(self._record).parameters.values())
        returns = inspect.signature(work).return_annotation
        signature = inspect.Signature(
            [*(one.replace(kind=inspect.Parameter.POSITIONAL_ONLY) for one in before), *fields],
            return_annotation=returns,
        )

        @wraps(work)
        def called(*given: Any, **named: Any) -> Any:
            refuse_unknown(self._record, named, work.__qualname__.removesuffix(".__init__"))
            signature.bind(*given, **named)  # TypeError, as of any function, where something is missing
            return work(*given, self._record(**named))

        called.__signature__ = signature  # type: ignore[attr-defined]  # for `help` and editors
        return called

    def method(
        self, work: Callable[[Own, First, Settings], Result]
    ) -> Callable[Concatenate[Own, First, Given], Result]:
        return self.function(work)


def refuse_unknown(record: Any, given: Iterable[str], function: str) -> None:
    """Refuse names that the record does not have, and say which was probably meant."""
    known = [field.name for field in dataclasses.fields(record)]
    for name in given:
        if name not in known:
            alike = difflib.get_close_matches(name, known, n=1)
            instead = f"Did you mean `{alike[0]}`?" if alike else f"Use one of {', '.join(known)}."
            raise InputError(f"{name!r} is not a parameter", where=function, remedy=instead)


class Fault(str):
    """A sentence on what is wrong, and the keys whose values are at odds: changing one of them fixes it."""

    keys: tuple[str, ...]

    def __new__(cls, sentence: str, *keys: str) -> Fault:
        fault = super().__new__(cls, sentence)
        fault.keys = keys
        return fault


def parse_numbers(text: str) -> tuple[float, ...]:
    """`0.5` or `0.49,0.48,0.45`."""
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"{text} is not one number per channel",
            remedy="Give one number, or one per channel with commas between them: 0.5,0.5,0.5.",
        ) from None


def read_settings(
    kind: type[Settings], table: Mapping[str, Any], *, where: str, remedy: str = "", given: Mapping[str, Any] = NOTHING
) -> Settings:
    """Builds the dataclass `kind` from a table. A class may add `faults()`, which returns what is wrong with values.

    What is `given` lies over the table. `remedy` is for tables that nobody writes by hand; without it what is wrong
    says what would be right.
    """
    hints = typing.get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]  # a dataclass, as its contract says
    laid_over = {**table, **given}
    faults: list[str] = [f"unknown key {key!r}" for key in laid_over if key not in fields]
    values: dict[str, Any] = {}
    for name, field in fields.items():
        if name in laid_over:
            try:
                values[name] = _finite(converted(hints[name], laid_over[name]))
            except ValueError as error:
                faults.append(Fault(f"{name} = {laid_over[name]!r}: {error}", name))
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            faults.append(Fault(f"{name} is missing", name))
    if not faults:
        settings = kind(**values)
        faults = list(getattr(settings, "faults", list)())
        if not faults:
            return settings
    raise InputError(join_faults(faults), where=where, remedy=remedy or _remedy(fields, table, given, faults))


def _finite(value: Any) -> Any:
    """TOML has nan and inf, which pass most comparisons with a limit and end in a loss that is not a number."""
    if any(
        isinstance(part, float) and not math.isfinite(part)
        for part in (value if isinstance(value, tuple) else (value,))
    ):
        raise ValueError("expected a finite number")
    return value


def _remedy(
    fields: Mapping[str, dataclasses.Field[Any]],
    table: Mapping[str, Any],
    given: Mapping[str, Any],
    faults: Sequence[str],
) -> str:
    """All keys only where one is unknown; else those at fault, each with a value that is known to do.

    Of values that are at odds those are named that were given: with the recipe's own in their place the fault is gone,
    as it is with the defaults where nothing was given.
    """
    at_fault: dict[str, None] = {}
    others: dict[str, None] = {}  # that the recipe has, with which the given ones are at odds
    for fault in faults:
        keys = fault.keys if isinstance(fault, Fault) else ()
        changed = [key for key in keys if key in given]
        at_fault |= dict.fromkeys(changed or keys)
        others |= dict.fromkeys(key for key in keys if changed and key not in given and key in table)
    restored = [f"{key} = {json.dumps(table[key])}" for key in at_fault if key in given and key in table]
    rest = [fields[key] for key in at_fault if not (key in given and key in table)]
    lacking = [f.name for f in rest if f.name not in {**table, **given} and f.default is dataclasses.MISSING]
    default = [_as_written(field) for field in rest if isinstance(field.default, int | float | str | tuple | None)]
    change = f", or change {' or '.join(others)} as well" if others else ""
    sentences = [
        f"Known keys are {', '.join(fields)}." if any(key not in fields for key in (*table, *given)) else "",
        f"Add {', '.join(lacking)}." if lacking else "",
        f"Write {', '.join(restored)} (as the recipe has it) or a similar value{change}." if restored else "",
        f"Write {', '.join(default)} (the default) or a similar value." if default else "",
    ]
    return " ".join(filter(None, sentences)) or "Change the values that the message names."


def _as_written(field: dataclasses.Field[Any]) -> str:
    return f"no {field.name}" if field.default is None else f"{field.name} = {json.dumps(field.default)}"  # as in TOML


@dataclass(frozen=True)
class Shelf(Generic[Settings]):
    """Recipes of one stage: PACKAGE/recipes/PREFIX-NAME.toml. A recipe is asked for by name or by a file's path."""

    kind: type[Settings]
    package: str
    stage: str  # as messages call it
    prefix: str = ""

    def names(self) -> list[str]:
        """List the names as files are called: with the prefix, so that no two shelves have a name in common."""
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
            raise InputError(f"it is not valid TOML ({error})", where=name_or_path, remedy="Fix the file.") from None
        return read_settings(self.kind, table, given=overrides or NOTHING, where=f"{self.stage} recipe {name_or_path}")
