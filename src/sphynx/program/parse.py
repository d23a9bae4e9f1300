"""A program from the JSON that `Program.to_json` writes. A client gets it from a server: nothing in it is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from sphynx.config import read_settings
from sphynx.errors import InputError
from sphynx.program.ir import (
    FORMAT_NAME,
    FORMAT_VERSIONS,
    KINDS,
    REMEDY,
    Combine,
    Final,
    Linear,
    Pool,
    Program,
    Step,
    Summand,
    Term,
)
from sphynx.space.tally import Shape

Part = TypeVar("Part", Term, Summand)

# A client prints names as they come from the server: they must not steer its terminal.
UNPRINTABLE = "a name has characters that cannot be printed"
# Large networks have some hundreds. A client plans them, and keeps a number for each element of each tensor.
MAX_STEPS, MAX_TERMS = 1 << 11, 1 << 13
MAX_ELEMENTS = 1 << 28
_REMEDY_SIZE = "Networks of that size cannot be evaluated privately: compile a smaller one."


def program_from_json(data: Any, where: str = "program") -> Program:
    """Types before values, values before anything is computed from them."""
    if not isinstance(data, Mapping):
        raise InputError("it is not a JSON object", where=where, remedy=REMEDY)
    _check_format(data.get("format"), where)
    steps = data.get("steps")
    if not isinstance(steps, list):
        raise InputError("it has no list of steps", where=where, remedy=REMEDY)
    if len(steps) > MAX_STEPS:
        raise InputError(f"it has more than {MAX_STEPS:,} steps", where=where, remedy=_REMEDY_SIZE)
    listed = (step.get(key) for step in steps if isinstance(step, Mapping) for key in ("terms", "summands"))
    if sum(len(terms) for terms in listed if isinstance(terms, list)) > MAX_TERMS:
        raise InputError(f"it has more than {MAX_TERMS:,} terms", where=where, remedy=_REMEDY_SIZE)
    read = tuple(_step_from_json(step, f"{where}, step {number}") for number, step in enumerate(steps))
    table = {key: value for key, value in data.items() if key not in ("format", "steps")}
    table["image"] = _shape_from_json(data.get("image"), where)
    try:
        program = read_settings(_ProgramTable, table, where=where).program(read)
    except InputError as error:
        raise InputError(error.what, where=where, remedy=REMEDY) from None
    if data["format"] != f"{FORMAT_NAME}/{program.format_version}":
        raise InputError(
            f"its steps are those of format {program.format_version}, not of {data['format']}",
            where=where,
            remedy=REMEDY,
        )
    elements = sum(shape.size for shape in program.shapes.values())
    if elements > MAX_ELEMENTS:
        raise InputError(f"its tensors have {elements:,} elements together", where=where, remedy=_REMEDY_SIZE)
    return program


@dataclass(frozen=True)
class _ProgramTable:
    """The keys of the file beside its steps, for their types to be checked before anything is computed from them."""

    image: Shape
    ring_bits: int
    weight_bits: int
    class_names: tuple[str, ...]
    name: str
    picture_part: float = 1.0
    final: Final = ""

    def faults(self) -> list[str]:
        return [] if all(map(str.isprintable, (self.name, *self.class_names))) else [UNPRINTABLE]

    def program(self, steps: tuple[Step, ...]) -> Program:
        names = self.class_names, self.name
        return Program(self.image, steps, self.ring_bits, self.weight_bits, *names, self.picture_part, self.final)


def _check_format(found: Any, where: str) -> None:
    name, _, version = str(found).partition("/")
    # Python refuses to read integers of thousands of digits, which a hostile server could send.
    is_number = version.isdecimal() and len(version) < 10
    newest = FORMAT_VERSIONS[-1]
    if name == FORMAT_NAME and is_number and int(version) > newest:
        raise InputError(
            f"it is of format version {version}; this installation reads up to {newest}",
            where=where,
            remedy="Install a newer sphynx, or compile the network again with this one.",
        )
    if found not in [f"{FORMAT_NAME}/{known}" for known in FORMAT_VERSIONS]:
        raise InputError(f"its format is {found!r}, not {FORMAT_NAME}/{newest}", where=where, remedy=REMEDY)


def _shape_from_json(value: Any, where: str) -> Shape:
    if not (isinstance(value, list) and len(value) == 3 and all(type(length) is int for length in value)):
        raise InputError(f"{value!r} is not [channels, height, width]", where=where, remedy=REMEDY)
    return Shape(*value)


def _step_from_json(data: Any, where: str) -> Step:
    kind = KINDS.get(str(data.get("kind"))) if isinstance(data, Mapping) else None
    if kind is None:
        raise InputError(f"it is not a step of a known kind ({', '.join(KINDS)})", where=where, remedy=REMEDY)
    table = {key: value for key, value in data.items() if key != "kind"}
    if kind is Linear:
        table["terms"] = _parts_from_json(Term, "term", table.get("terms"), where)
    if kind is Combine:
        table["summands"] = _parts_from_json(Summand, "summand", table.get("summands"), where)
    if kind in (Linear, Combine):
        table["shape"] = _shape_from_json(table.get("shape"), where)
    for key in ("row_windows", "column_windows"):
        pairs = table.get(key)
        are_pairs = isinstance(pairs, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in pairs)
        if kind is Pool and not are_pairs:
            raise InputError(f"{key} are not pairs", where=where, remedy=REMEDY)
    step = read_settings(kind, table, where=where, remedy=REMEDY)
    if not step.name.isprintable():
        raise InputError(UNPRINTABLE, where=where, remedy=REMEDY)
    return step


def _parts_from_json(kind: type[Part], called: str, value: Any, where: str) -> tuple[Part, ...]:
    if not isinstance(value, list):
        raise InputError(f"it has no list of {called}s", where=where, remedy=REMEDY)
    parts = [part if isinstance(part, Mapping) else {} for part in value]
    return tuple(
        read_settings(kind, part, where=f"{where}, {called} {number}", remedy=REMEDY)
        for number, part in enumerate(parts)
    )
