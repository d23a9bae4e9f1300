"""What a program costs under protocol, per linear map and nonlinearity, counted from its public shapes.

HE: products and ciphertexts by the packing plan, each map planned by itself (a tensor that two maps read in one layout
is uploaded once at run time: the uploads here are an upper bound). GC and GMW: the formulas of the ReLU protocols for
ranges of w bits, a ring of k bits, truncation by f bits. MACs are those of the server's plaintext pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from math import ceil, log2

from sphynx.core import rlwe
from sphynx.core.conv_shape import ConvShape
from sphynx.program.ir import Linear, Program, Relu, Term
from sphynx.space.tally import Shape

LABEL_BYTES, AND_BYTES = 16, 32


@dataclass(frozen=True)
class LayerCost:
    """Of one linear map, and of the ReLU that reads it where there is one."""

    macs: int = 0
    he_products: int = 0
    he_uploads: int = 0
    he_replies: int = 0
    relus: int = 0
    gc_ands: int = 0
    gc_table_bytes: int = 0  # offline
    gc_online_bytes: int = 0
    gmw_online_bytes: int = 0
    gmw_messages: int = 0

    def __add__(self, other: LayerCost) -> LayerCost:
        return LayerCost(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


def layer_costs(program: Program) -> Iterator[tuple[str, LayerCost]]:
    truncations = {step.source: step.truncate for step in program.steps if isinstance(step, Relu)}
    params = rlwe.Params.for_ring(program.ring_bits)
    for step in program.linears:
        cost = _linear_cost(program, step, params)
        if step.name in truncations:
            cost += relu_cost(step.shape.size, step.range_bits, program.ring_bits, truncations[step.name])
        yield step.name, cost


def total_cost(program: Program) -> LayerCost:
    return sum((cost for _, cost in layer_costs(program)), LayerCost())


def relu_cost(relus: int, w: int, k: int, f: int) -> LayerCost:
    ands = (w - 1) + max(0, w - 1 - f) + (k - 1)
    depth = ceil(log2(w - 1)) if w > 2 else 0
    gmw_bits = (w - 1) + 6 * (w - 2) - 2 * depth + 2 * (k + 1) + 5
    return LayerCost(
        relus=relus,
        gc_ands=relus * ands,
        gc_table_bytes=relus * ands * AND_BYTES,
        gc_online_bytes=ceil(relus * (8 * LABEL_BYTES * w + k) / 8),
        gmw_online_bytes=ceil(relus * gmw_bits / 8),
        gmw_messages=3 + depth,
    )


def conv_shape(term: Term, source: Shape, out: Shape) -> ConvShape:
    return ConvShape(
        source.channels,
        source.height,
        source.width,
        out.channels,
        term.kernel_height,
        term.kernel_width,
        out.height,
        out.width,
        term.stride,
        term.dilation,
        term.pad_top,
        term.pad_left,
    )


def _linear_cost(program: Program, step: Linear, params: rlwe.Params) -> LayerCost:
    shapes = tuple(conv_shape(term, program.shapes[term.source], step.shape) for term in step.terms)
    plan = rlwe.plan(params, *shapes)
    macs = sum(step.shape.size * s.in_channels * s.kernel_height * s.kernel_width for s in shapes)
    return LayerCost(macs, plan.products, plan.uploads, plan.replies)
