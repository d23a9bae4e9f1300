"""Operators with weights, and average pools: convolutions, dense layers, batch norm."""

from __future__ import annotations

from dataclasses import replace
from math import lcm

import numpy as np

from sphynx.compiler.frontend.operators.one_axis import also_over_one_axis
from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.value import Pads, Value
from sphynx.compiler.frontend.operators.walker import Walker, Ways
from sphynx.compiler.frontend.operators.windows import Slide, padded_counts, pads_nothing, pool_slides, slides
from sphynx.compiler.fusion.affine import Floats, Node, Window
from sphynx.compiler.fusion.select import select
from sphynx.compiler.fusion.window_sums import Spans, adaptive_spans, sliding_spans, span_lengths
from sphynx.program.ir import MAX_EXTENT, NOTHING

NO_PADS: Pads = ((0, 0), (0, 0))


def convolution(walker: Walker, op: Operation) -> Value:
    node, groups = walker.map(op), int(op.attributes.get("group", 1))
    weights = walker.constant(op, 1, (None, node.shape.channels // max(groups, 1), None, None))
    if groups < 1 or node.shape.channels % groups or len(weights) % groups:
        raise op.refusal(f"has {groups} groups, which do not divide its channels", "Check its attribute group.")
    rows, columns = slides(op, node.shape, weights.shape[2:])
    walker.fits(op, (len(weights), rows.outputs, columns.outputs))
    if rows.dilation != columns.dilation or rows.stride != columns.stride:
        walker.fits_weights(op, (*weights.shape[:2], rows.reach, columns.reach), weights)
    return Value.of_map(_add_bias(walker, op, _convolve(walker, node, weights, rows, columns, groups, op.name), 2))


def _convolve(walker: Walker, node: Node, weights: Floats, rows: Slide, columns: Slide, groups: int, name: str) -> Node:
    if rows.stride != columns.stride:
        return _uneven(walker, node, weights, rows, columns, groups, name)
    dilation = rows.dilation
    if rows.dilation != columns.dilation:
        weights, dilation = _spread(weights, rows.dilation, columns.dilation), 1
    size = (rows.outputs, columns.outputs)
    height, width = weights.shape[2:]
    window = Window(height, width, *size, rows.stride, dilation, rows.before, columns.before)
    return walker.fuser.convolve(node, weights, window, groups)


def _uneven(walker: Walker, node: Node, weights: Floats, rows: Slide, columns: Slide, groups: int, name: str) -> Node:
    """Strides that differ: of the rows and columns that lie a stride apart, each set is convolved with stride 1."""
    weights = _spread(weights, rows.dilation, columns.dilation)
    total: Node | None = None
    for row_phase, row_taps in _phases(rows, weights.shape[2]).items():
        for column_phase, column_taps in _phases(columns, weights.shape[3]).items():
            own = [
                tuple(range(p, n, s))
                for p, n, s in (
                    (row_phase, node.shape.height, rows.stride),
                    (column_phase, node.shape.width, columns.stride),
                )
            ]
            if not all(own):
                continue
            places = [min(taps.values()) for taps in (row_taps, column_taps)]
            extents = [
                max(taps.values()) - first + 1 for taps, first in zip((row_taps, column_taps), places, strict=True)
            ]
            kernel = np.zeros((*weights.shape[:2], *extents))
            for tap, y in row_taps.items():
                for other, x in column_taps.items():
                    kernel[:, :, y - places[0], x - places[1]] = weights[:, :, tap, other]
            part = select(walker.fuser, node, f"{name}.rows{row_phase}.columns{column_phase}", None, *own)
            window = Window(extents[0], extents[1], rows.outputs, columns.outputs, top=-places[0], left=-places[1])
            convolved = walker.fuser.convolve(part, kernel, window, groups)
            total = convolved if total is None else total + convolved
    if total is None:  # every output reads padding alone
        nothing = np.zeros((*weights.shape[:2], 1, 1))
        return walker.fuser.convolve(node, nothing, Window(1, 1, rows.outputs, columns.outputs), groups)
    return total


def _phases(axis: Slide, taps: int) -> dict[int, dict[int, int]]:
    """Tap t of output y reads position stride * (y + place) + phase: {phase: {t: place}}."""
    found: dict[int, dict[int, int]] = {}
    for tap in range(taps):
        place, phase = divmod(tap - axis.before, axis.stride)
        found.setdefault(phase, {})[tap] = place
    return found


def _spread(weights: Floats, row_dilation: int, column_dilation: int) -> Floats:
    """Write out the zeros between dilated taps."""
    outputs, inputs, rows, columns = weights.shape
    wide = np.zeros((outputs, inputs, row_dilation * (rows - 1) + 1, column_dilation * (columns - 1) + 1))
    wide[:, :, ::row_dilation, ::column_dilation] = weights
    return wide


def transposed_convolution(walker: Walker, op: Operation) -> Value:
    """A convolution, its kernel turned around, of the map with zeros between its pixels."""
    node, groups = walker.map(op), int(op.attributes.get("group", 1))
    weights = walker.constant(op, 1, (node.shape.channels, None, None, None))
    if groups < 1 or node.shape.channels % groups:
        raise op.refusal(f"has {groups} groups, which do not divide its channels", "Check its attribute group.")
    strides, dilations, extra = (
        [int(n) for n in op.attributes.get(key, default)]
        for key, default in (("strides", [1, 1]), ("dilations", [1, 1]), ("output_padding", [0, 0]))
    )
    pads = [int(n) for n in op.attributes.get("pads", [0] * 4)]
    if "output_shape" in op.attributes or op.attributes.get("auto_pad", b"NOTSET") != b"NOTSET":
        raise op.refusal("leaves its padding to the runtime", "Export it with pads.")
    if min(strides + dilations) < 1 or min(pads) < 0 or max(strides + dilations + pads + extra) > MAX_EXTENT:
        raise op.refusal("has strides, dilations or pads that are not valid", "Check its attributes.")
    reaches = [d * (k - 1) + 1 for d, k in zip(dilations, weights.shape[2:], strict=True)]
    walker.fits_weights(op, (*weights.shape[:2], *reaches), weights)
    walker.fits(op, (node.shape.channels, *(s * (n - 1) + 1 for s, n in zip(strides, node.shape[1:], strict=True))))
    kernel = weights.reshape(groups, -1, *weights.shape[1:]).swapaxes(1, 2)  # [groups, outputs, inputs, rows, columns]
    kernel = kernel.reshape(-1, *kernel.shape[2:])[:, :, ::-1, ::-1]
    kernel = _spread(kernel, *dilations)
    stuffed = [_stuff(length, stride) for length, stride in zip(node.shape[1:], strides, strict=True)]
    between = select(walker.fuser, node, f"{op.name}.stuffed", None, *stuffed)
    size, before = [], []
    for axis in range(2):
        reach = kernel.shape[2 + axis]
        size.append(len(stuffed[axis]) + reach - 1 - pads[axis] - pads[axis + 2] + extra[axis])
        before.append(reach - 1 - pads[axis])
    walker.fits(op, (len(kernel), *size))
    window = Window(kernel.shape[2], kernel.shape[3], size[0], size[1], top=before[0], left=before[1])
    return Value.of_map(_add_bias(walker, op, walker.fuser.convolve(between, kernel, window, groups), 2))


def _stuff(length: int, stride: int) -> tuple[int, ...]:
    return tuple(at // stride if at % stride == 0 else NOTHING for at in range(stride * (length - 1) + 1))


def _add_bias(walker: Walker, op: Operation, node: Node, number: int) -> Node:
    if number >= len(op.inputs) or not op.inputs[number]:
        return node
    bias = walker.constant(op, number, (node.shape.channels,))
    return walker.fuser.scale(node, np.ones(len(bias)), bias)


def average_pool(walker: Walker, op: Operation) -> Value:
    value = walker.value(op)
    node = walker.map(op)
    counts_pads = bool(op.attributes.get("count_include_pad", 0))
    axes, (rows, columns) = _slide_pool(walker, op, node, NO_PADS)
    if value.unpadded and (counts_pads or pads_nothing(op)) and not op.attributes.get("ceil_mode"):
        # The zeros of a Pad are pixels to the pool that reads them: both can be one public map.
        whole, pads = value.unpadded
        slides_of_whole, spans = _slide_pool(walker, op, whole, pads)
        if _see_pixels(spans):
            node, counts_pads, axes, (rows, columns) = whole, True, slides_of_whole, spans
    if not _see_pixels((rows, columns)):
        raise op.refusal("has a window that sees only padding", "Pad by less than the kernel's size.")
    counts = span_lengths(rows), span_lengths(columns)
    if counts_pads:
        counts = padded_counts(axes[0], node.shape.height), padded_counts(axes[1], node.shape.width)
    if max(lcm(*lengths) for lengths in counts) > MAX_EXTENT:
        raise op.refusal("has windows of too many sizes at its border", "Use count_include_pad = 1, or pad less.")
    return Value.of_map(walker.fuser.average(node, rows, columns, op.name, counts=counts))


def _slide_pool(
    walker: Walker, op: Operation, node: Node, pads: Pads
) -> tuple[tuple[Slide, Slide], tuple[Spans, Spans]]:
    """Return how the windows slide, and which pixels each of them sees."""
    axes = pool_slides(op, node.shape, pads)
    walker.fits(op, (node.shape.channels, *(axis.outputs for axis in axes)))
    rows, columns = (
        sliding_spans(n, axis.kernel, axis.stride, axis.before, axis.outputs)
        for n, axis in zip(node.shape[1:], axes, strict=True)
    )
    return axes, (rows, columns)


def _see_pixels(spans: tuple[Spans, Spans]) -> bool:
    """Tell whether every window lies on some pixel."""
    return all(first < last for first, last in (*spans[0], *spans[1]))


def adaptive_average(walker: Walker, op: Operation) -> Value:
    """To any size, larger ones as well, as torch divides a map."""
    node = walker.map(op)
    sizes = op.attributes["output_size"]
    walker.fits(op, (node.shape.channels, *sizes))
    rows, columns = (adaptive_spans(n, size) for n, size in zip(node.shape[1:], sizes, strict=True))
    return Value.of_map(walker.fuser.average(node, rows, columns, op.name))


def global_average(walker: Walker, op: Operation) -> Value:
    node = walker.map(op)
    mean = walker.fuser.average(node, ((0, node.shape.height),), ((0, node.shape.width),), op.name)
    return Value.of_map(mean)


def dense(walker: Walker, op: Operation) -> Value:
    """Gemm or MatMul: a kernel of the whole map's size, with the vector's order in its weights; or one for each row."""
    value, attributes = walker.value(op), op.attributes
    if attributes.get("transA"):
        raise op.refusal("transposes its input", "Use transA = 0.")
    size, transposed = value.dims[-1], bool(attributes.get("transB"))
    weights = walker.constant(op, 1, (None, size) if transposed else (size, None))
    weights = float(attributes.get("alpha", 1)) * (weights if transposed else weights.T)
    if len(value.dims) > 1:
        made = lines(walker, op, value, weights, axis=-1)
    else:
        made = Value.of_vector(_of_vector(walker, op, value, weights))
    if len(op.inputs) < 3 or not op.inputs[2]:
        return made
    shift = float(attributes.get("beta", 1)) * walker.spread(op, 2, made)
    made = made.settled(walker.fuser, op.name)
    return replace(made, node=walker.fuser.shift(made.node, shift.reshape(made.node.shape)))


def _of_vector(walker: Walker, op: Operation, value: Value, weights: Floats) -> Node:
    node = value.node
    if value.order is not None:
        walker.fits_weights(op, (len(weights), node.shape.size), weights)
        placed = np.zeros((len(weights), node.shape.size))
        taken = value.order != NOTHING
        np.add.at(placed.T, value.order[taken], weights[:, taken].T)
        weights = placed
    return walker.fuser.convolve(node, weights.reshape(-1, *node.shape), Window(*node.shape[1:], 1, 1))


def lines(walker: Walker, op: Operation, value: Value, weights: Floats, *, axis: int) -> Value:
    """A dense layer, weights [outputs, inputs], of each line along an axis, the last or the last but one: a convolution
    of one tap."""
    if len(value.dims) < 2 or value.dims[axis] != weights.shape[1]:
        shown = "x".join(map(str, value.dims))
        raise op.refusal(f"multiplies a map of {shown} by {weights.shape[1]} weights", "Check its weights.")
    order = np.moveaxis(value.numbers(), axis, 0)
    others = order.shape[1:]
    walker.fits(op, (len(weights), *others))
    laid_out = value.moved(order.reshape(len(order), -1, others[-1]))
    node = laid_out.settled(walker.fuser, op.name).node
    made = walker.fuser.convolve(node, weights[:, :, None, None], Window(1, 1, *node.shape[1:]))
    numbered = np.arange(made.shape.size).reshape(len(weights), *others)
    return Value.of_map(made).moved(np.moveaxis(numbered, 0, axis))


def batch_norm(walker: Walker, op: Operation) -> Value:
    value = walker.value(op).settled(walker.fuser, op.name)
    if op.attributes.get("training_mode"):
        raise op.refusal("has no fixed statistics", "Export the network for inference (model.eval()).")
    weight, bias, mean_, variance = (
        walker.constant(op, number, (value.node.shape.channels,)) for number in range(1, 5)
    )
    factor = weight / np.sqrt(variance + float(op.attributes.get("epsilon", 1e-5)))
    return replace(value, node=walker.fuser.scale(value.node, factor, bias - mean_ * factor), unpadded=None)


WAYS: Ways = {
    "Conv": also_over_one_axis(convolution),
    "ConvTranspose": also_over_one_axis(transposed_convolution),
    "AveragePool": also_over_one_axis(average_pool),
    "AdaptiveAveragePool": also_over_one_axis(adaptive_average),
    "GlobalAveragePool": also_over_one_axis(global_average),
    "Gemm": dense,
    "BatchNormalization": also_over_one_axis(batch_norm),
}
