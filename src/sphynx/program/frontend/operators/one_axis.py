"""Windows over one axis, such as a signal's time: its positions are a map of one row. No torch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sphynx.program.frontend.operators.operation import Operation
from sphynx.program.frontend.operators.value import Value
from sphynx.program.frontend.operators.walker import Walker, Way

# What an attribute of one axis is for rows, beside which its own numbers are for columns.
_OF_ROWS = {"kernel_shape": 1, "strides": 1, "dilations": 1, "output_size": 1, "output_padding": 0, "pads": 0}


def also_over_one_axis(way: Way) -> Way:
    """The same for values of channels and positions."""

    def walk(walker: Walker, op: Operation) -> Value | list[Value]:
        value = walker.value(op)
        if len(value.dims) != 2:
            return way(walker, op)
        channels, length = value.dims
        name = f"{op.name}.row"
        walker.values[name] = value.moved(value.numbers().reshape(channels, 1, length))
        inputs = [name, *op.inputs[1:]]
        if walker.has_constant(op, 1) and walker.constants[op.inputs[1]].ndim == 3:
            inputs[1] = f"{name}.weights"
            walker.constants[inputs[1]] = walker.constants[op.inputs[1]][:, :, None]
        attributes = {key: _with_rows(key, given) for key, given in op.attributes.items()}
        made = way(walker, replace(op, inputs=tuple(inputs), attributes=attributes))
        assert isinstance(made, Value)
        numbers = made.numbers()
        return made.moved(numbers.reshape(numbers.shape[0], numbers.shape[2]))

    return walk


def _with_rows(key: str, given: Any) -> Any:
    if key not in _OF_ROWS:
        return given
    own = [int(n) for n in given]
    return [number for each in own for number in (_OF_ROWS[key], each)]  # pads: before, after
