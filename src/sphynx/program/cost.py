"""What a program costs under protocol, per linear map and nonlinearity, counted from its public shapes.

HE: products and ciphertexts by the packing plan, each map planned by itself; a tensor that two maps read in one layout
is uploaded once and counted where it is read first. GC and GMW: the formulas of the ReLU protocols for ranges of w
bits, a ring of k bits, truncation by f bits; squares open one masked number and reshare. MACs are those of the server's
plaintext pass, zeros between taps included. No frame headers, no handshakes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache
from math import ceil, log2

from sphynx.core import rlwe
from sphynx.core.conv_shape import ConvShape
from sphynx.core.packing import ConvPlan, InputLayout
from sphynx.core.packing_plan import plan_convolutions
from sphynx.program.ir import Linear, Program, Relu, Square, Term
from sphynx.space.tally import Shape

LABEL_BYTES, AND_BYTES = 16, 32


@dataclass(frozen=True)
class LayerCost:
    """Of one linear map, and of the nonlinearity that reads it where there is one."""

    macs: int = 0
    he_products: int = 0
    he_uploads: int = 0
    he_replies: int = 0
    he_upload_bytes: int = 0
    he_reply_bytes: int = 0
    relus: int = 0
    gc_ands: int = 0
    gc_table_bytes: int = 0  # offline
    gc_ots: int = 0  # offline: one for each of the client's input wires
    gc_online_bytes: int = 0
    gmw_ots: int = 0
    gmw_online_bytes: int = 0
    gmw_messages: int = 0
    squares: int = 0
    square_online_bytes: int = 0
    square_messages: int = 0

    def __add__(self, other: LayerCost) -> LayerCost:
        return LayerCost(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


def layer_costs(program: Program, layers: Collection[str] | None = None) -> Iterator[tuple[str, LayerCost]]:
    """Of all linear maps, or of these."""
    readers = {step.source: step for step in program.steps if isinstance(step, Relu | Square)}
    params = rlwe.Params.for_ring(program.ring_bits)
    uploaded: set[tuple[str, int, InputLayout]] = set()
    for step in program.linears:
        if layers is not None and step.name not in layers:
            continue
        cost = _linear_cost(program, step, params, uploaded)
        reader = readers.get(step.name)
        if isinstance(reader, Relu):
            cost += relu_cost(step.shape.size, step.range_bits, program.ring_bits, reader.truncate)
        elif isinstance(reader, Square):
            truncations = (reader.truncate_before, reader.truncate_after)
            cost += square_cost(step.shape.size, program.ring_bits, *truncations)
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
        gc_ots=relus * (w + k),
        gc_online_bytes=ceil(relus * (8 * LABEL_BYTES * w + k) / 8),
        gmw_ots=relus * (w + 2 * (w - 1) + 5),
        gmw_online_bytes=ceil(relus * gmw_bits / 8),
        gmw_messages=3 + depth,
    )


def square_cost(squares: int, k: int, before: int, after: int) -> LayerCost:
    """The masked difference one way, the reshared product back; a truncation by f adds a carry tree of f bits."""
    bits, messages = 2 * k, 2
    for f in (before, after):
        if f:
            depth = ceil(log2(f)) if f > 1 else 0
            bits += f + 6 * (f - 1) - 2 * depth + 2
            messages += 2 + depth
    return LayerCost(squares=squares, square_online_bytes=ceil(squares * bits / 8), square_messages=messages)


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


def _linear_cost(
    program: Program, step: Linear, params: rlwe.Params, uploaded: set[tuple[str, int, InputLayout]]
) -> LayerCost:
    shapes = tuple(conv_shape(term, program.shapes[term.source], step.shape) for term in step.terms)
    plan = _plan(params.n, params.upload_bytes, params.reply_bytes(0), shapes)
    needed = {(term.source, term.shift, layout) for term, layout in zip(step.terms, plan.layouts, strict=True)}
    uploads = sum(layout.ciphertexts for _, _, layout in needed - uploaded)
    uploaded |= needed
    return LayerCost(
        macs=sum(step.shape.size * s.in_channels * s.kernel_height * s.kernel_width for s in shapes),
        he_products=plan.products,
        he_uploads=uploads,
        he_replies=plan.replies,
        he_upload_bytes=uploads * params.upload_bytes,
        he_reply_bytes=rlwe.reply_bytes(params, plan),
    )


@lru_cache(maxsize=1024)
def _plan(degree: int, upload_bytes: int, reply_bytes: int, shapes: tuple[ConvShape, ...]) -> ConvPlan:
    """Kept, because a compiler that weighs its choices asks for the same maps again and again."""
    return plan_convolutions(degree, shapes, upload_bytes=upload_bytes, reply_bytes=reply_bytes)
