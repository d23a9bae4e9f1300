"""The outputs of a program: named arrays. Public.

An output is a tensor of the program, whose step has its scale and range. The client gets its integers, x 2^scale of
real numbers x, lays them out as the network does, and applies the function that the network had at its end.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from sphynx.program.convolve import Array
from sphynx.program.limits import MAX_AXES
from sphynx.space.tally import Shape

Final = Literal["", "softmax", "log_softmax", "sigmoid"]
Reveals = Literal["values", "label"]  # what of an output its client gets: all of its numbers, or which is the largest
LOGITS = "logits"  # the name of an output that has none
MAX_OUTPUTS = 64


@dataclass(frozen=True)
class Output:
    """One array of an answer.

    >>> program = sphynx.Compiled.load("compiled/digits").program
    >>> [output.name for output in program.outputs], program.outputs[0].has_classes
    (['logits'], True)
    """

    name: str
    source: str  # the tensor: a linear map or a sum that has a range
    dims: tuple[int, ...] = ()  # as the network lays it out; empty: a vector, or channels, height, width
    final: Final = ""  # what the network had behind it, for the client to apply
    axis: int = 0  # of `dims`, along which a softmax is
    class_names: tuple[str, ...] = ()  # where its elements are scores of classes
    reveals: Reveals = "values"
    margin: int = 0  # with a label: it is told where the largest number leads by so much, in the output's integers

    @property
    def has_classes(self) -> bool:
        """Return whether its elements are scores of classes, one of which is the answer."""
        return bool(self.class_names) or (len(self.dims) == 1 and self.final in ("softmax", "log_softmax"))

    def faults_for(self, shape: Shape) -> Iterator[str]:
        """List what is wrong with it, as an output of a tensor of this shape."""
        dims = self.dims or default_dims(shape)
        if len(dims) > MAX_AXES or min(dims) < 1 or prod(dims) != shape.size:
            yield f"the output {self.name}: its dimensions {list(dims)} do not fit a tensor of {shape}"
        elif not 0 <= self.axis < len(dims):
            yield f"the output {self.name}: it has no axis {self.axis}"
        if self.class_names and len(self.class_names) != shape.size:
            yield f"{len(self.class_names)} class names for {shape.size} numbers of the output {self.name}"
        if self.margin and self.reveals != "label":
            yield f"the output {self.name}: it has a margin and reveals its values"

    def finished(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """Apply the network's own end to its numbers, [n, *dims]."""
        axis = self.axis + 1
        if self.final == "sigmoid":
            found: NDArray[np.float64] = np.exp(-np.logaddexp(0, -numbers))
            return found
        if self.final not in ("softmax", "log_softmax"):
            return numbers
        logs: NDArray[np.float64] = numbers - np.logaddexp.reduce(numbers, axis=axis, keepdims=True)
        return logs if self.final == "log_softmax" else np.exp(logs)


def default_dims(shape: Shape) -> tuple[int, ...]:
    """The layout of a tensor where nothing else is said: one pixel is a vector."""
    return (shape.channels,) if shape[1:] == (1, 1) else tuple(shape)


def output_faults(outputs: Sequence[Output], shapes: Mapping[str, Shape]) -> Iterator[str]:
    """List what is wrong with a program's outputs."""
    if not 1 <= len(outputs) <= MAX_OUTPUTS:
        yield f"it has {len(outputs)} outputs, not 1 to {MAX_OUTPUTS}"
    names = [output.name for output in outputs]
    if len({*names}) != len(names) or not all(names):
        yield "two outputs have the same name, or one has none"
    for output in outputs:
        if output.source not in shapes:
            yield f"the output {output.name}: there is no tensor {output.source!r}"
        else:
            yield from output.faults_for(shapes[output.source])


def joined(answers: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """Lay answers [n, ...] out one behind the other: [n, numbers]."""
    return np.concatenate([answer.reshape(len(answer), -1) for answer in answers.values()], axis=1)


def split_numbers(outputs: Sequence[Output], shapes: Mapping[str, Shape], numbers: Array) -> dict[str, Array]:
    """Lay out [n, all numbers of all outputs, one behind the other] as an array [n, *dims] for each."""
    found: dict[str, Array] = {}
    first = 0
    for output in outputs:
        shape = shapes[output.source]
        found[output.name] = numbers[:, first : first + shape.size].reshape(len(numbers), *output.dims)
        first += shape.size
    return found
