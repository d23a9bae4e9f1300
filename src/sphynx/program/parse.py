"""A program from the JSON that `Program.to_json` writes. A client gets it from a server: nothing in it is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from sphynx.config import read_settings
from sphynx.errors import InputError
from sphynx.program.ir import (
    FORMAT_NAME,
    FORMAT_VERSION,
    KINDS,
    REMEDY,
    Combine,
    Gather,
    Input,
    Linear,
    Output,
    Pool,
    Program,
    Step,
    Summand,
    Term,
)
from sphynx.program.outputs import MAX_OUTPUTS
from sphynx.space.tally import Shape

Part = TypeVar("Part", Term, Summand)
Described = TypeVar("Described", Input, Output)

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
    table = {key: value for key, value in data.items() if key not in ("format", "steps", "input", "outputs")}
    table["image"] = _shape_from_json(data.get("image"), where)
    source = _part_from_json(Input, data.get("input"), f"{where}, input")
    outputs = _outputs_from_json(data.get("outputs"), where)
    try:
        program = read_settings(_ProgramTable, table, where=where).program(read, source, outputs)
    except InputError as error:
        raise InputError(error.what, where=where, remedy=REMEDY) from None
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
    name: str
    made_from: str

    def program(self, steps: tuple[Step, ...], source: Input, outputs: tuple[Output, ...]) -> Program:
        names = (self.name, self.made_from, source.name)
        shown = (name for output in outputs for name in (output.name, *output.class_names))
        if not all(map(str.isprintable, (*names, *shown))):
            raise InputError(UNPRINTABLE, remedy=REMEDY)
        widths = self.ring_bits, self.weight_bits
        return Program(self.image, steps, *widths, source, self.name, self.made_from, outputs=outputs)


def _outputs_from_json(value: Any, where: str) -> tuple[Output, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_OUTPUTS:
        raise InputError(f"it has no list of 1 to {MAX_OUTPUTS} outputs", where=where, remedy=REMEDY)
    outputs = (_part_from_json(Output, part, f"{where}, output {number}") for number, part in enumerate(value))
    return tuple(outputs)


def _part_from_json(kind: type[Described], value: Any, where: str) -> Described:
    """Every key must be there: a client is told what it feeds and gets, not what would be usual."""
    if not isinstance(value, Mapping):
        raise InputError("it is not a JSON object", where=where, remedy=REMEDY)
    needed = {field.name for field in fields(kind)} - ({"margin"} if value.get("reveals") != "label" else set())
    missing = sorted(needed - value.keys())
    if missing:
        raise InputError(f"{', '.join(missing)} is missing", where=where, remedy=REMEDY)
    try:
        return read_settings(kind, value, where=where, remedy=REMEDY)
    except OverflowError:  # an integer beyond the largest float
        raise InputError("it has a number that is far too large", where=where, remedy=REMEDY) from None


def _check_format(found: Any, where: str) -> None:
    name, _, version = str(found).partition("/")
    # Python refuses to read integers of thousands of digits, which a hostile server could send.
    is_number = version.isdecimal() and len(version) < 10
    if name == FORMAT_NAME and is_number and int(version) > FORMAT_VERSION:
        raise InputError(
            f"it is of format version {version}; this installation reads up to {FORMAT_VERSION}",
            where=where,
            remedy="Install a newer sphynx, or compile the network again with this one.",
        )
    if found != f"{FORMAT_NAME}/{FORMAT_VERSION}":
        raise InputError(f"its format is {found!r}, not {FORMAT_NAME}/{FORMAT_VERSION}", where=where, remedy=REMEDY)


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
    if kind in (Linear, Combine, Gather):
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
