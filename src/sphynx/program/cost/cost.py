"""Count what a program costs under protocol, per linear map and nonlinearity, from its public shapes.

HE: products and ciphertexts by the packing plan, each map planned by itself; a tensor that two maps read in one layout
is uploaded once and counted where it is read first. The protocol plans the program as a whole and takes a little less:
protocol/planned_he.py counts that.
GC and GMW: ranges of w bits, a ring of k bits, truncation by f bits; squares and gates open masked numbers and reshare,
signed truncations open carries. Pools and sums are public and cost nothing here. Online bytes are exactly those of the
messages; each message has a frame header of 8 bytes beside.
MACs are those of the server's plaintext pass, zeros between taps included. No handshakes.
"""

from __future__ import annotations

import atexit
from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields, replace
from functools import lru_cache

from sphynx.core import rlwe
from sphynx.core.bits import plane_words
from sphynx.core.conv_shape import ConvShape
from sphynx.core.digits import digits_of
from sphynx.core.gmw import (
    THREE_CORRECTIONS,
    TRUNCATION_ARITY,
    ReluShape,
    online_messages,
    truncation_conversion,
    turns,
)
from sphynx.core.packing import ConvPlan, InputLayout
from sphynx.core.packing_plan import plan_convolutions
from sphynx.program.ir import Gate, Linear, Program, Relu, Square, Term
from sphynx.program.steps import Compared
from sphynx.space.tally import Shape

LABEL_BYTES, AND_BYTES = 16, 32
GC_MESSAGES = 2  # online: labels down, in as many frames as they take, and colour bits up
PLANE_BITS = 64  # bits of many ReLUs travel as planes of whole words
CUT_RELUS = 1 << 14  # that GMW prepares at a time, a multiple of 64
TRUNCATION_BITS = 2  # of each truncation, opened at its end: the carry and the wrap


@dataclass(frozen=True)
class LayerCost:
    """The cost of one linear map, and of the nonlinearities behind it up to the next one."""

    macs: int = 0
    ring_macs: int = 0  # of them those that the ring convolution makes: none of padding
    convolutions: int = 0
    he_products: int = 0
    he_weights: int = 0  # polynomials that are prepared: tiles of an image share theirs
    he_uploads: int = 0
    he_replies: int = 0
    he_used: int = 0  # coefficients of replies that are outputs
    he_upload_bytes: int = 0
    he_reply_bytes: int = 0
    he_messages: int = 0
    relus: int = 0
    comparisons: int = 0  # of max pools; what follows is of both
    relu_layers: int = 0
    gc_ands: int = 0
    gc_table_bytes: int = 0  # offline
    gc_ots: int = 0  # offline: one for each of the client's input wires
    gc_online_bytes: int = 0
    gc_messages: int = 0  # online, as are gmw_messages: those waited for, one after the other
    gmw_ots: int = 0
    gmw_down_ots: int = 0  # of them those whose message the server sends
    gmw_offline_ring_bytes: int = 0  # beside the OTs
    gmw_correction_bytes: int = 0  # of them those that the server sends
    gmw_online_bytes: int = 0
    gmw_messages: int = 0
    squares: int = 0
    square_layers: int = 0
    square_ots: int = 0
    square_correction_bytes: int = 0  # offline, of the server
    square_online_bytes: int = 0
    square_messages: int = 0
    truncations: int = 0
    truncation_layers: int = 0  # those of squares among them, unlike above
    truncation_ots: int = 0
    truncation_down_ots: int = 0  # of them those whose message the server sends
    truncation_correction_bytes: int = 0  # offline, of the server
    truncation_online_bytes: int = 0
    truncation_messages: int = 0
    gates: int = 0  # products of an element with its channel's gate
    gate_layers: int = 0
    gate_ots: int = 0
    gate_down_ots: int = 0  # of them those whose message the server sends
    gate_correction_bytes: int = 0  # offline, of either party
    gate_online_bytes: int = 0
    gate_messages: int = 0

    def __add__(self, other: LayerCost) -> LayerCost:
        return LayerCost(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


def layer_costs(program: Program, layers: Collection[str] | None = None) -> Iterator[tuple[str, LayerCost]]:
    """Count all linear maps, or these; with each the nonlinearities that read it, or a public map of it."""
    nonlinear: dict[str, LayerCost] = {}
    owners = activation_owners(program)
    wanted = {name for name, owner in owners.items() if layers is None or owner in layers}
    for name, cost in activation_costs(program, activations=wanted):
        nonlinear[owners[name]] = nonlinear.get(owners[name], LayerCost()) + cost
    params = _params(program.ring_bits)
    uploaded: set[tuple[str, int, InputLayout]] = set()
    for step in program.linears:
        if layers is not None and step.name not in layers:
            continue
        cost = _linear_cost(program, step, params, uploaded)
        yield step.name, cost + nonlinear.get(step.name, LayerCost())


def activation_owners(program: Program) -> dict[str, str]:
    """Map each nonlinear step to the latest linear map behind what it reads; to the first of all where none is."""
    places = {step.name: place for place, step in enumerate(program.linears)}
    names = list(places)
    latest = dict.fromkeys(program.shapes, 0)
    for step in program.steps:
        own = [places[step.name]] if step.name in places else [latest[name] for name in step.sources]
        latest[step.name] = max(own)
    return {step.name: names[latest[step.name]] for step in program.activations}


def activation_costs(
    program: Program, batch: int = 1, activations: Collection[str] | None = None
) -> Iterator[tuple[str, LayerCost]]:
    """Count the nonlinear steps alone, by their names: all, or these.

    A batch's elements of one step are one layer: they share planes, whose last word is unfilled once, not per image.
    """
    for step in program.activations:
        if activations is not None and step.name not in activations:
            continue
        shape = program.shapes[step.name]
        if isinstance(step, Gate):
            yield step.name, gate_cost(batch * shape.channels, shape.height * shape.width, program.ring_bits)
        else:
            w = program.ranges[step.source]
            yield step.name, _activation_cost(step, batch * shape.size, w, program.ring_bits)


def _activation_cost(step: Compared, count: int, w: int, k: int) -> LayerCost:
    if isinstance(step, Square):
        return square_cost(count, w, k, step.truncate_before, step.truncate_after)
    if isinstance(step, Relu):
        cost = relu_cost(count, w, k, step.truncate)
        return replace(cost, relus=0, comparisons=count) if step.comparison else cost
    return truncation_cost(count, w + 1, k, step.truncate)


def total_cost(program: Program) -> LayerCost:
    return sum((cost for _, cost in layer_costs(program)), LayerCost())


@lru_cache(maxsize=1024)
def relu_cost(relus: int, w: int, k: int, f: int) -> LayerCost:
    w = max(w, f + 2)  # as the protocol does: truncation must leave a bit beside the sign
    ands = (w - 1) + (w - 1 - f) + (k - 1)
    shape = ReluShape(w, k, f, relus)
    digits, row = shape.digits, PLANE_BITS * shape.words
    nodes, threes = digits.tree.pair_count + 1 + 2 * digits.tree.three_count, digits.tree.three_count
    of_threes = sum(THREE_CORRECTIONS) * threes * row // 8
    converted = shape.conversion
    corrections = converted.correction_bytes + digits.correction_rows * row // 8 + of_threes
    return LayerCost(
        relus=relus,
        relu_layers=1,
        gc_ands=relus * ands,
        gc_table_bytes=relus * ands * AND_BYTES,
        gc_ots=relus * (w + k),
        gc_online_bytes=relus * w * LABEL_BYTES + row * k // 8,
        gc_messages=GC_MESSAGES,
        gmw_ots=row * (digits.bit_rows + 2 * nodes) + converted.ots,
        gmw_down_ots=row * nodes,
        gmw_offline_ring_bytes=corrections + of_threes + packed_bytes(relus, k),
        gmw_correction_bytes=corrections,
        gmw_online_bytes=online_messages(shape).online_bytes,
        gmw_messages=online_messages(shape).messages,
    )


def square_cost(squares: int, w: int, k: int, before: int, after: int) -> LayerCost:
    """The masked difference one way, the reshared product back; a truncation by f adds a carry tree of f bits."""
    row = PLANE_BITS * -(-squares // PLANE_BITS)
    cost = LayerCost(
        squares=squares,
        square_layers=1,
        square_ots=k * row,
        square_correction_bytes=sum(packed_bytes(squares, k - bit) for bit in range(k)),
        square_online_bytes=2 * packed_bytes(squares, k),
        square_messages=2,
    )
    widths = ((w + 1, before), (2 * (w - before), after))
    truncations = (truncation_cost(squares, wide, k, f) for wide, f in widths if f)
    return replace(sum(truncations, cost), truncations=0)  # none that a step of its own makes


def truncation_cost(count: int, w: int, k: int, f: int) -> LayerCost:
    """Truncate 0 <= x < 2^(w-1), as those of signed numbers, one bit wider, and of squares are."""
    digits, row = digits_of(f + 1, 0, f, TRUNCATION_ARITY), PLANE_BITS * plane_words(count)
    nodes, plane_bytes = digits.tree.pair_count, row // 8
    converted = truncation_conversion(w, k, f, plane_words(count))
    opened_rows = digits.code_rows + 2 * sum(digits.opened_rows) + 2 * TRUNCATION_BITS
    return LayerCost(
        truncations=count,
        truncation_layers=1,
        truncation_ots=row * (digits.bit_rows + 2 * nodes) + converted.ots,
        truncation_down_ots=row * nodes,
        truncation_correction_bytes=converted.correction_bytes + digits.correction_rows * plane_bytes,
        truncation_online_bytes=opened_rows * plane_bytes + packed_bytes(count, k),
        truncation_messages=2 * turns(len(digits.opened_rows) + 1),
    )


def gate_cost(gates: int, length: int, k: int) -> LayerCost:
    """Count gates that multiply `length` elements each: offline k OTs for each, either way, with long messages."""
    row = PLANE_BITS * -(-gates // PLANE_BITS)
    return LayerCost(
        gates=gates * length,
        gate_layers=1,
        gate_ots=2 * k * row,
        gate_down_ots=k * row,
        gate_correction_bytes=sum(packed_bytes(gates * length, k - bit) for bit in range(k)),
        gate_online_bytes=2 * packed_bytes(gates * length, k) + packed_bytes(gates, k),
        gate_messages=2,
    )


def packed_bytes(elements: int, k: int) -> int:
    """The size of one message of ring elements."""
    return (elements * k + 7) // 8


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
        term.groups,
    )


def _linear_cost(
    program: Program, step: Linear, params: rlwe.Params, uploaded: set[tuple[str, int, InputLayout]]
) -> LayerCost:
    shapes = tuple(conv_shape(term, program.shapes[term.source], step.shape) for term in step.terms)
    plan = _plan(params.n, params.upload_bytes, params.reply_bytes(0), shapes)
    needed = {(term.source, term.shift, layout) for term, layout in zip(step.terms, plan.layouts, strict=True)}
    new = needed - uploaded
    uploads = sum(layout.ciphertexts for _, _, layout in new)
    uploaded |= needed
    return LayerCost(
        macs=sum(step.shape.size * s.in_channels * s.kernel_height * s.kernel_width for s in shapes),
        ring_macs=sum(shape.multiplications for shape in shapes),
        convolutions=len(shapes),
        he_products=plan.products,
        he_weights=plan.products // plan.tiles,
        he_uploads=uploads,
        he_replies=plan.replies,
        he_used=plan.tiles * sum(plan.used_counts),
        he_upload_bytes=uploads * params.upload_bytes,
        he_reply_bytes=rlwe.reply_bytes(params, plan),
        he_messages=len(new) + 1,
    )


@lru_cache(maxsize=16)
def _params(ring_bits: int) -> rlwe.Params:
    """Kept likewise: their tables take as long to make as a map takes to plan."""
    return rlwe.Params.for_ring(ring_bits)


atexit.register(_params.cache_clear)  # native objects that outlive the interpreter are reported as leaks


@lru_cache(maxsize=1024)
def _plan(degree: int, upload_bytes: int, reply_bytes: int, shapes: tuple[ConvShape, ...]) -> ConvPlan:
    """Kept, because a compiler that weighs its choices asks for the same maps again and again."""
    return plan_convolutions(degree, shapes, upload_bytes=upload_bytes, reply_bytes=reply_bytes)
