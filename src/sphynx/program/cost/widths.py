"""Range and ring widths guessed from shapes, before there are weights. No torch.

A sum of n products of a tensor of a bits with weights of b bits takes about a + b + log2(n) / 2 bits: weights and
activations are mostly far below their largest values, about as much as the sign and the headroom need. Calibration sets
the real widths; the guess serves to compare programs that do not exist yet.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2

from sphynx.program.ir import INPUT, MAX_RING_BITS, Graph, Linear, Pool, Program, Relu, Square, Step

PIXEL_BITS = 8
HEADROOM_AND_SIGN_BITS = 3


def guess_bits(graph: Graph, weight_bits: int, activation_bits: int, link_bits: int) -> dict[str, int]:
    """Of every tensor."""
    compared = {step.source for step in graph.steps if isinstance(step, Relu | Square)} | {graph.logits.name}
    bits = {INPUT: float(PIXEL_BITS)}
    for step in graph.steps:
        if isinstance(step, Linear):
            sums = (
                bits[term.source]
                + log2(graph.shapes[term.source].channels * term.kernel_height * term.kernel_width) / 2
                for term in step.terms
            )
            bits[step.name] = max(sums) + (weight_bits if step.name in compared else link_bits)
        elif isinstance(step, Pool):
            bits[step.name] = bits[step.source] + _growth_bits(step)
        else:
            bits[step.name] = float(activation_bits)
    return {name: ceil(width) for name, width in bits.items()}


def guess_program(graph: Graph, bits: dict[str, int], weight_bits: int, ring_bits: int | None = None) -> Program:
    """The graph with these ranges, cut to the ring where one is given."""
    readers = {step.source: step for step in graph.steps if isinstance(step, Relu | Square)}
    compared = {*readers, graph.logits.name}
    ring = ring_bits or min(MAX_RING_BITS, max(bits[name] for name in compared))
    steps: list[Step] = []
    for step in graph.steps:
        if isinstance(step, Linear) and step.name in compared:
            step = replace(step, range_bits=min(ring, bits[step.name]))
        elif isinstance(step, Relu):
            dropped = min(ring, bits[step.source]) - HEADROOM_AND_SIGN_BITS - bits[step.name]
            step = replace(step, truncate=max(0, dropped))
        steps.append(step)
    return Program(graph.image, tuple(steps), ring, weight_bits)


def _growth_bits(step: Pool) -> float:
    """Sums of ReLUs, which have one sign, grow with their number."""
    rows, columns = (
        max(factor * (last - first) for (first, last), factor in zip(windows, factors, strict=True))
        for windows, factors in ((step.row_windows, step.row_factors), (step.column_windows, step.column_factors))
    )
    return log2(rows * columns)
