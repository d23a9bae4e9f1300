"""Range and ring widths guessed from shapes, before there are weights. No torch.

A sum of n products of a tensor of a bits with weights of b bits takes about a + b + log2(n) / 4 + 3/2 bits, the sign
and the headroom among them: weights and activations are mostly far below their largest values, the more so the more
there are. A link of a chain takes two and a half bits less, because its weights' signs and the headroom count once.
Both were fitted to compiled networks: ours, ResNets, MobileNetV2, ShuffleNetV2, SqueezeNet. Calibration sets the real
widths; the guess serves to compare programs that do not exist yet.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, log2

from sphynx.program.ir import (
    INPUT,
    MAX_RING_BITS,
    Combine,
    Gate,
    Gather,
    Graph,
    Linear,
    Pool,
    Program,
    Relu,
    Square,
    Step,
    Term,
    Truncate,
)
from sphynx.program.limits import PIXEL_BITS

HEADROOM_AND_SIGN_BITS = 3
SUM_BITS, LINK_SUM_BITS = 1.5, -1.0
LEAST_LOGIT_BITS = 8  # of their weights: with fewer, their rounding would be seen beside that of all maps before


def compared_tensors(graph: Graph) -> set[str]:
    """The tensors that a nonlinearity or the user reads. Of the others some are links of chains, some parts of sums."""
    return nonlinear_sources(graph) | {*graph.output_names}


def nonlinear_sources(graph: Graph) -> set[str]:
    """The tensors that a nonlinearity compares, squares or truncates."""
    return {step.source for step in graph.activations if not isinstance(step, Gate)}


def guess_bits(graph: Graph, weight_bits: int, activation_bits: int, link_bits: int) -> dict[str, int]:
    """Guess the bits of every tensor. Those of pixels, of activations and of sums of them have neither sign nor
    headroom, all others have both; a range has them in any case."""
    compared = compared_tensors(graph)
    bare = {INPUT}
    bits = {INPUT: float(PIXEL_BITS)}
    for step in graph.steps:
        if isinstance(step, Linear):
            sums = (bits[term.source] + _sum_bits(graph, term) for term in step.terms)
            is_link = step.name in graph.links and step.name not in compared
            bits[step.name] = max(sums) + (link_bits + LINK_SUM_BITS if is_link else weight_bits + SUM_BITS)
            continue
        if bare.issuperset(step.sources):
            bare.add(step.name)
        if isinstance(step, Pool):
            bits[step.name] = bits[step.source] + _growth_bits(step)
        elif isinstance(step, Gather):
            bits[step.name] = bits[step.source]
        elif isinstance(step, Combine):
            # Shifted to one scale, the widest summand rules; a difference of two maps is hardly wider than either.
            bits[step.name] = max(bits[name] for name in step.sources)
        elif isinstance(step, Gate):
            bits[step.name] = bits[step.source] + bits[step.gate]
        elif isinstance(step, Relu) and step.comparison:
            bits[step.name] = bits[step.source]
        else:
            bits[step.name] = float(activation_bits)
            bare.add(step.name)
    return {name: ceil(w) + HEADROOM_AND_SIGN_BITS * (name in compared & bare) for name, w in bits.items()}


def _sum_bits(graph: Graph, term: Term) -> float:
    inputs = graph.shapes[term.source].channels // term.groups
    return log2(inputs * term.kernel_height * term.kernel_width) / 4


def guess_ring(graph: Graph, bits: dict[str, int], weight_bits: int) -> int:
    """Guess a ring as wide as the widest range, one bit wider than those of signed truncations; perhaps wider than any.

    Outputs that would be wider than all others are made of coarser weights (quantise.py).
    """
    truncated, read = _truncated_tensors(graph), nonlinear_sources(graph)
    others = [bits[name] + (name in truncated) for name in read]
    coarser = max(0, weight_bits - LEAST_LOGIT_BITS) if others else 0
    linear = {step.name for step in graph.linears}
    outputs = [bits[name] - coarser * (name in linear) for name in graph.output_names if name not in read]
    return max((*others, *outputs))


def _truncated_tensors(graph: Graph) -> set[str]:
    return {step.source for step in graph.steps if isinstance(step, Truncate)}


def guess_program(graph: Graph, bits: dict[str, int], weight_bits: int, ring_bits: int | None = None) -> Program:
    """The graph with these ranges, cut to the ring where one is given."""
    compared, truncated = compared_tensors(graph), _truncated_tensors(graph)
    ring = ring_bits or min(MAX_RING_BITS, guess_ring(graph, bits, weight_bits))
    ranges = {name: min(ring - (name in truncated), bits[name]) for name in compared}
    steps: list[Step] = []
    for step in graph.steps:
        if isinstance(step, Linear | Combine) and step.name in compared:
            step = replace(step, range_bits=ranges[step.name])
        elif isinstance(step, Relu | Truncate):
            dropped = ranges[step.source] - HEADROOM_AND_SIGN_BITS - bits[step.name]
            least = 1 if isinstance(step, Truncate) else 0
            is_exact = isinstance(step, Relu) and step.comparison
            step = replace(step, truncate=0 if is_exact else max(least, dropped))
        elif isinstance(step, Square):
            kept = bits[step.name]  # as many are read, which the square doubles
            before = max(0, ranges[step.source] - HEADROOM_AND_SIGN_BITS - kept)
            step = replace(step, truncate_before=before, truncate_after=kept)
        steps.append(step)
    return Program(graph.image, tuple(steps), ring, weight_bits, outputs=graph.outputs)


def _growth_bits(step: Pool) -> float:
    """Sums of ReLUs have one sign, but few of them are near the largest."""
    rows, columns = (
        max(factor * (last - first) for (first, last), factor in zip(windows, factors, strict=True))
        for windows, factors in ((step.row_windows, step.row_factors), (step.column_windows, step.column_factors))
    )
    return log2(rows * columns) / 2
