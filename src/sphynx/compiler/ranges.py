"""The bits that a program's numbers need: a range for each tensor, and the ring that holds them all."""

from __future__ import annotations

from dataclasses import replace
from math import floor

from sphynx.errors import SphynxError
from sphynx.program.cost.widths import compared_tensors
from sphynx.program.ir import MAX_RING_BITS, Combine, Graph, Linear, Relu, Square, Step, Truncate

HEADROOM_BITS = 2

REMEDY = "Compile with fewer `activation_bits` or `weight_bits`."


def bits_for(largest: float) -> int:
    """Bits of an unsigned integer as large as this."""
    return max(0, floor(largest)).bit_length()


def range_bits(largest: float) -> int:
    """Bits for values up to `largest`, with the sign and the headroom."""
    return bits_for(largest) + 1 + HEADROOM_BITS


def with_ranges(graph: Graph, steps: tuple[Step, ...], largest: dict[str, int]) -> tuple[Step, ...]:
    truncations = {step.source: step.truncate for step in steps if isinstance(step, Relu | Truncate)}
    compared = compared_tensors(graph)
    ranged: list[Step] = []
    for step in steps:
        if isinstance(step, Linear | Combine) and step.name in compared:
            # The sign takes a bit; a truncation leaves at least one.
            bits = max(range_bits(largest[step.name]), truncations.get(step.name, 0) + 1)
            if bits > MAX_RING_BITS:
                raise SphynxError(f"it needs {bits} bits, more than any ring has", where=step.name, remedy=REMEDY)
            step = replace(step, range_bits=bits)
        ranged.append(step)
    return tuple(ranged)


def ring_bits(steps: tuple[Step, ...]) -> int:
    """A signed truncation takes a bit beyond its range, a square twice what it leaves of it."""
    ranges = {step.name: step.range_bits for step in steps if isinstance(step, Linear | Combine)}
    needed = list(ranges.values())
    for step in steps:
        if isinstance(step, Truncate) or (isinstance(step, Square) and step.truncate_before):
            needed.append(ranges[step.source] + 1)
        if isinstance(step, Square):
            needed.append(2 * (ranges[step.source] - step.truncate_before))
    return max(needed, default=0)
