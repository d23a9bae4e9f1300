"""What a program costs under protocol, per linear map and nonlinearity, counted from its public shapes.

HE: products and ciphertexts by the packing plan, each map planned by itself; a tensor that two maps read in one layout
is uploaded once and counted where it is read first; the protocol plans the program as a whole and may differ a little.
GC and GMW: ranges of w bits, a ring of k bits, truncation by f bits; squares open one masked number
and reshare. Online bytes are those of the messages, exactly; each message has a frame header of 8 bytes beside.
MACs are those of the server's plaintext pass, zeros between taps included. No handshakes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache

from sphynx.core import rlwe
from sphynx.core.conv_shape import ConvShape
from sphynx.core.gmw import ReluShape, online_messages
from sphynx.core.packing import ConvPlan, InputLayout
from sphynx.core.packing_plan import plan_convolutions
from sphynx.program.ir import Linear, Program, Relu, Square, Term
from sphynx.space.tally import Shape

LABEL_BYTES, AND_BYTES = 16, 32
GC_MESSAGES = 2  # online: labels down, in as many frames as they take, and colour bits up
PLANE_BITS = 64  # bits of many ReLUs travel as planes of whole words
GMW_CONVERTED_BITS = 5  # of each ReLU, made additive offline by a product with a ring element


@dataclass(frozen=True)
class LayerCost:
    """Of one linear map, and of the nonlinearity that reads it where there is one."""

    macs: int = 0
    ring_macs: int = 0  # of them those that the ring convolution makes: none of padding
    convolutions: int = 0
    he_products: int = 0
    he_uploads: int = 0
    he_replies: int = 0
    he_upload_bytes: int = 0
    he_reply_bytes: int = 0
    he_messages: int = 0
    relus: int = 0
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
    square_online_bytes: int = 0
    square_messages: int = 0

    def __add__(self, other: LayerCost) -> LayerCost:
        return LayerCost(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))


def layer_costs(program: Program, layers: Collection[str] | None = None) -> Iterator[tuple[str, LayerCost]]:
    """Of all linear maps, or of these."""
    nonlinear = dict(activation_costs(program, layers=layers))
    params = rlwe.Params.for_ring(program.ring_bits)
    uploaded: set[tuple[str, int, InputLayout]] = set()
    for step in program.linears:
        if layers is not None and step.name not in layers:
            continue
        cost = _linear_cost(program, step, params, uploaded)
        yield step.name, cost + nonlinear.get(step.name, LayerCost())


def activation_costs(
    program: Program, batch: int = 1, layers: Collection[str] | None = None
) -> Iterator[tuple[str, LayerCost]]:
    """Of the ReLUs and squares alone, by the linear map that each reads: of all, or of these.

    A batch's elements of one step are one layer: they share planes, whose last word is unfilled once, not per image.
    """
    linears = {step.name: step for step in program.linears}
    for step in program.steps:
        if not isinstance(step, Relu | Square) or (layers is not None and step.source not in layers):
            continue
        source = linears[step.source]
        count = batch * source.shape.size
        if isinstance(step, Relu):
            yield source.name, relu_cost(count, source.range_bits, program.ring_bits, step.truncate)
        else:
            yield source.name, square_cost(count, program.ring_bits, step.truncate_before, step.truncate_after)


def total_cost(program: Program) -> LayerCost:
    return sum((cost for _, cost in layer_costs(program)), LayerCost())


def relu_cost(relus: int, w: int, k: int, f: int) -> LayerCost:
    w = max(w, f + 2)  # as the protocol does: truncation must leave a bit beside the sign
    ands = (w - 1) + (w - 1 - f) + (k - 1)
    shape = ReluShape(w, k, f, relus)
    tree, row = shape.tree(), PLANE_BITS * shape.words
    corrections = packed_bytes(row * GMW_CONVERTED_BITS, k)
    return LayerCost(
        relus=relus,
        gc_ands=relus * ands,
        gc_table_bytes=relus * ands * AND_BYTES,
        gc_ots=relus * (w + k),
        gc_online_bytes=relus * w * LABEL_BYTES + row * k // 8,
        gc_messages=GC_MESSAGES,
        gmw_ots=row * (w + 2 * (tree.inner_count + 1) + GMW_CONVERTED_BITS),
        gmw_down_ots=row * (tree.inner_count + 1),
        gmw_offline_ring_bytes=corrections + packed_bytes(relus, k),
        gmw_correction_bytes=corrections,
        gmw_online_bytes=online_messages(shape).online_bytes,
        gmw_messages=3 + tree.level_count,
    )


def square_cost(squares: int, k: int, before: int, after: int) -> LayerCost:
    """The masked difference one way, the reshared product back; a truncation by f adds a carry tree of f bits."""
    online_bytes, messages = 2 * packed_bytes(squares, k), 2
    for f in (before, after):
        if f:
            shape = ReluShape(f + 1, k, 0, squares)
            plane_bytes = PLANE_BITS * shape.words // 8
            levels = online_messages(shape).levels
            online_bytes += (f + 1) * plane_bytes + 2 * sum(levels) + 2 * 2 * plane_bytes + packed_bytes(squares, k)
            messages += 3 + len(levels)
    return LayerCost(squares=squares, square_online_bytes=online_bytes, square_messages=messages)


def packed_bytes(elements: int, k: int) -> int:
    """Of one message of ring elements."""
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
        he_uploads=uploads,
        he_replies=plan.replies,
        he_upload_bytes=uploads * params.upload_bytes,
        he_reply_bytes=rlwe.reply_bytes(params, plan),
        he_messages=len(new) + 1,
    )


@lru_cache(maxsize=1024)
def _plan(degree: int, upload_bytes: int, reply_bytes: int, shapes: tuple[ConvShape, ...]) -> ConvPlan:
    """Kept, because a compiler that weighs its choices asks for the same maps again and again."""
    return plan_convolutions(degree, shapes, upload_bytes=upload_bytes, reply_bytes=reply_bytes)
