"""The values that workers and the owner of the ledger send each other (`calls.py`), each kind with its check.

A `Kind` writes a value as JSON can hold it, and reads it back: whatever is not of the kind is a ValueError, and nothing
is longer or larger than its bound.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any

from sphynx.program.backends import BACKENDS
from sphynx.protocol.bundle import ID_BYTES
from sphynx.service.ledger import Entry
from sphynx.service.metrics import SAMPLES, Values

MOST_ROWS = 1024  # of one list
MOST_VALUES, MOST_LABELS = 256, 4  # of a worker's metrics, and of one of them
_NAME = re.compile(r"[A-Za-z0-9_.+-]{0,128}")
_ID_DIGITS = re.compile(f"[0-9a-f]{{{2 * ID_BYTES}}}")
_MOST_COUNT = 1 << 53


@dataclass(frozen=True)
class Kind:
    read: Callable[[Any], Any]
    write: Callable[[Any], Any] = lambda value: value


def _read_count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < _MOST_COUNT:
        raise ValueError("it is not a count")
    return value


def _read_size(value: Any) -> int:
    if not _read_count(value):
        raise ValueError("it must not be 0")
    return int(value)


def _read_number(value: Any) -> float:
    if type(value) not in (int, float) or abs(value) > _MOST_COUNT or math.isnan(value):
        raise ValueError("it is not a finite number")
    return float(value)


def _read_seconds(value: Any) -> float:
    number = _read_number(value)
    if number < 0:
        raise ValueError("it is below 0")
    return number


def _read_flag(value: Any) -> bool:
    if type(value) is not bool:
        raise ValueError("it is not true or false")
    return value


def _read_name(value: Any) -> str:
    if type(value) is not str or not _NAME.fullmatch(value):
        raise ValueError("it is not a name")
    return value


def _read_backend(value: Any) -> str:
    if value not in BACKENDS:
        raise ValueError("it is not a backend")
    return str(value)


def _read_id(value: Any) -> bytes:
    if type(value) is not str or not _ID_DIGITS.fullmatch(value):
        raise ValueError("it is not an identifier")
    return bytes.fromhex(value)


def _read_nothing(value: Any) -> None:
    if value is not None:
        raise ValueError("nothing was expected")


def optional(kind: Kind) -> Kind:
    return Kind(
        lambda value: None if value is None else kind.read(value),
        lambda value: None if value is None else kind.write(value),
    )


def _several(kind: Kind) -> Kind:
    """Lists; of a longer one the beginning: what is left over comes with the next call."""

    def read(values: Any) -> list[Any]:
        return [kind.read(value) for value in _read_list(values, MOST_ROWS)]

    def write(values: Iterable[Any]) -> list[Any]:
        return [kind.write(value) for value in [*values][:MOST_ROWS]]

    return Kind(read, write)


def _read_list(values: Any, most: int) -> list[Any]:
    if type(values) is not list or len(values) > most:
        raise ValueError("it is not a list, or too long")
    return values


def _read_entry(value: Any) -> Entry:
    if type(value) is not dict or value.keys() != _OF_ENTRY.keys():
        raise ValueError("it is not an entry")
    return Entry(**{name: kind.read(value[name]) for name, kind in _OF_ENTRY.items()})


def _read_values(value: Any) -> Values:
    found: Values = {}
    for each in _read_list(value, MOST_VALUES):
        name, labels, number = _read_list(each, 3)
        if _read_name(name) not in SAMPLES:
            raise ValueError("there is no such metric")
        pairs = [_read_list(pair, 2) for pair in _read_list(labels, MOST_LABELS)]
        found[name, tuple((_read_name(key), _read_name(label)) for key, label in pairs)] = _read_number(number)
    return found


COUNT, SIZE, NUMBER, SECONDS = Kind(_read_count), Kind(_read_size), Kind(_read_number), Kind(_read_seconds)
FLAG, NAME, NOTHING, BACKEND = Kind(_read_flag), Kind(_read_name), Kind(_read_nothing), Kind(_read_backend)
ID = Kind(_read_id, bytes.hex)
_OF_ENTRY = {
    "bundle_id": ID,
    "owner": NAME,
    "program": NAME,
    "backend": BACKEND,
    "batch": SIZE,
    "expires_at": NUMBER,
    "size_bytes": COUNT,
    "offline_seconds": SECONDS,
    "offline_bytes": COUNT,
    "holder": NAME,
}
assert {*_OF_ENTRY} == {field.name for field in fields(Entry)}
ENTRY = Kind(_read_entry, lambda entry: {name: _OF_ENTRY[name].write(value) for name, value in asdict(entry).items()})
METRIC_VALUES = Kind(_read_values, lambda values: [[name, labels, number] for (name, labels), number in values.items()])
ENTRIES, IDS, NAMES = _several(ENTRY), _several(ID), _several(NAME)
