"""Windows over one axis, such as a signal's time: its positions are a map of one row. No torch.

A convolution over channels, as in ECA (Wang et al. 2020), reads a map of one pixel across its channels: it is a dense
layer, most of whose weights are zero.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.value import Value
from sphynx.compiler.frontend.operators.walker import Walker, Way
from sphynx.compiler.frontend.operators.windows import slides
from sphynx.compiler.fusion.affine import Window
from sphynx.program.ir import NOTHING
from sphynx.space.tally import Shape

# What an attribute of one axis is for rows, beside which its own numbers are for columns.
_OF_ROWS = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_size": 1, "output_padding": 0, "pads": 0}


def also_over_one_axis(way: Way) -> Way:
    """The same for values of channels and positions."""

    def walk(walker: Walker, op: Operation) -> Value | list[Value]:
        value = walker.value(op)
        if len(value.dims) != 2:
            return way(walker, op)
        channels, length = value.dims
        in_one_row = replace(op, attributes={key: _with_rows(key, given) for key, given in op.attributes.items()})
        if op.kind == "Conv" and value.node.shape[1:] == (1, 1):
            return _convolve_vector(walker, in_one_row, value)
        name = f"{op.name}.row"
        walker.values[name] = value.moved(value.numbers().reshape(channels, 1, length))
        inputs = [name, *op.inputs[1:]]
        if op.kind in ("Conv", "ConvTranspose"):
            inputs[1] = f"{name}.weights"
            walker.constants[inputs[1]] = walker.constant(op, 1, (None, None, None))[:, :, None]
        made = way(walker, replace(in_one_row, inputs=tuple(inputs)))
        assert isinstance(made, Value)
        numbers = made.numbers()
        return made.moved(numbers.reshape(numbers.shape[0], numbers.shape[2]))

    return walk


def _with_rows(key: str, given: Any) -> Any:
    if key not in _OF_ROWS:
        return given
    own = [int(n) for n in given]
    return [number for each in own for number in (_OF_ROWS[key], each)]  # pads: before, after


def _convolve_vector(walker: Walker, op: Operation, value: Value) -> Value:
    (channels, length), numbers, groups = value.dims, value.numbers(), int(op.attributes.get("group", 1))
    weights = walker.constant(op, 1, (None, channels // max(groups, 1), None))
    if groups < 1 or channels % groups or len(weights) % groups:
        raise op.refusal(f"has {groups} groups, which do not divide its channels", "Check its attribute group.")
    _, along = slides(op, Shape(channels, 1, length), (1, weights.shape[2]))
    walker.fits_weights(op, (len(weights), along.outputs, value.node.shape.size), weights)  # as the dense layer has
    dense = np.zeros((groups, len(weights) // groups, along.outputs, value.node.shape.size))
    for group, tap, output in np.ndindex(groups, weights.shape[2], along.outputs):
        position = along.stride * output - along.before + along.dilation * tap
        if 0 <= position < length:
            reads = numbers.reshape(groups, -1, length)[group, :, position]
            own = weights.reshape(groups, -1, *weights.shape[1:])[group, :, reads != NOTHING, tap]
            np.add.at(dense[group, :, output].T, reads[reads != NOTHING], own)
    y = walker.fuser.convolve(value.node, dense.reshape(-1, value.node.shape.size, 1, 1), Window(1, 1, 1, 1))
    if len(op.inputs) > 2 and op.inputs[2]:
        bias = np.repeat(walker.constant(op, 2, (len(weights),)), along.outputs)
        y = walker.fuser.shift(y, bias.reshape(y.shape))
    return Value(y, (len(weights), along.outputs))
