"""Walk over operators: the values made so far, constants, and refusals that name the operation."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.sizes import LARGEST_MAP, Allowance, most_weights
from sphynx.compiler.frontend.operators.value import Value
from sphynx.compiler.fusion.affine import Floats, Node
from sphynx.compiler.fusion.fuse import Fuser
from sphynx.program.convolve import Array

BATCH = "Images of a batch must be kept apart: leave axis 0 as it is."
_SEES_ALL_AXES = (
    "Shape",
    "Transpose",
    "Gather",
    "Slice",
    "Split",
    "Squeeze",
    "Rearrange",
    "Identity",
    "Dropout",
    "Cast",
)
Way = Callable[["Walker", Operation], Value | list[Value]]


@dataclass
class Walker:
    fuser: Fuser
    constants: dict[str, Array]
    operations: Sequence[Operation] = ()
    outputs: Container[str] = ()  # values that are the network's
    approximates: bool = True  # or refuses what is not exact
    values: dict[str, Value] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)  # words of operations that another one has taken along
    inverted: set[str] = field(default_factory=set)  # values that stand for their own reciprocals

    def __post_init__(self) -> None:
        self.allowance = Allowance(sum(array.size for array in self.constants.values()))
        self._readers: dict[str, list[Operation]] = {}  # of each value, once for each time that they read it
        for operation in self.operations:
            for name in operation.inputs:
                self._readers.setdefault(name, []).append(operation)

    def only_reader(self, op: Operation) -> Operation | None:
        """The one operation that reads what this one makes, and reads it once; None where there are more, or none, or
        where it is an output as well."""
        if any(name in self.outputs for name in op.outputs):
            return None
        readers = [reader for name in op.outputs for reader in self._readers.get(name, ())]
        return readers[0] if len(readers) == 1 else None

    def value(self, op: Operation, number: int = 0) -> Value:
        """The feature map at one of the inputs, as the graph sees it."""
        found = self.values.get(op.inputs[number]) if number < len(op.inputs) else None
        if found is None:
            raise op.refusal(
                f"does not read a feature map as its input {number}", "Feature maps come first, constants after them."
            )
        if found.has_strayed and op.kind not in _SEES_ALL_AXES:
            raise op.refusal(f"reads a tensor of {_shown(found)}, whose first axis is not the batch", BATCH)
        return found

    def map(self, op: Operation, number: int = 0) -> Node:
        """The feature map at one of the inputs, of channels, rows and columns."""
        found = self.value(op, number)
        if not found.is_map:
            raise op.refusal(
                "does not read a map of channels, rows and columns",
                "Flatten once, between the last map and the dense layers.",
            )
        return found.settled(self.fuser, f"{op.name}.{number}").node

    def has_value(self, op: Operation, number: int) -> bool:
        return number < len(op.inputs) and op.inputs[number] in self.values

    def has_constant(self, op: Operation, number: int) -> bool:
        return number < len(op.inputs) and op.inputs[number] in self.constants

    def numbers(self, op: Operation, number: int) -> Floats:
        """A constant, of any shape."""
        name = op.inputs[number] if number < len(op.inputs) else ""
        found = self.constants.get(name)
        if found is None or found.dtype.kind not in "fiub":
            raise op.refusal(
                f"has no constant as its input {number}", "Export the network with its weights, for inference."
            )
        with np.errstate(invalid="ignore"):  # a damaged file's signalling NaNs: numbers are judged where they are used
            return np.asarray(found, np.float64)

    def integers(self, op: Operation, number: int, attribute: str = "") -> list[int]:
        """From an attribute, as older files have it, or from a constant."""
        if attribute and attribute in op.attributes:
            return [int(n) for n in op.attributes[attribute]]
        return [int(n) for n in self.numbers(op, number).reshape(-1)]

    def constant(self, op: Operation, number: int, shape: tuple[int | None, ...]) -> Floats:
        """A constant of this many dimensions, each as long as given where it is given."""
        found = self.numbers(op, number)
        if len(found.shape) != len(shape) or any(w not in (None, g) for w, g in zip(shape, found.shape, strict=True)):
            wanted = "x".join("n" if length is None else str(length) for length in shape)
            raise op.refusal(
                f"has weights of {'x'.join(map(str, found.shape)) or 'one number'}, not {wanted}",
                "Only convolutions of one or two axes and dense layers can be compiled.",
            )
        return found

    def spread(self, op: Operation, number: int, value: Value) -> Floats:
        """A constant, broadcast to one image of the value's dimensions as ONNX broadcasts."""
        whole = (1, *value.dims)
        try:
            array = self.numbers(op, number)
            if array.ndim > len(whole):
                raise ValueError
            found: Floats = np.broadcast_to(array, whole)[0]
            return found
        except ValueError:
            raise op.refusal(
                f"cannot combine its input {number} with a map of {'x'.join(map(str, value.dims))}",
                "Use maps of the same shape, or a constant.",
            ) from None

    def by_channel(self, op: Operation, value: Value, spread: Floats) -> tuple[Value, Floats] | None:
        """Numbers for a value's elements, which lie as the node's, as one for each channel of the node; None where they
        differ inside one. The graph may see other channels than the node has, or numbers along another axis: then the
        value is settled."""
        for settle in (False, True):
            found = value.settled(self.fuser, op.name) if settle else value
            numbers = spread.reshape(found.node.shape.channels, -1)
            if (numbers == numbers[:, :1]).all():
                return found, numbers[:, 0]
        for axis in range(1, len(value.dims)):
            along = np.moveaxis(spread, axis, 0).reshape(value.dims[axis], -1)
            if (along == along[:, :1]).all():
                turned = np.moveaxis(value.numbers(), axis, 0)
                laid_out = value.moved(turned.reshape(len(turned), -1, turned.shape[-1]))
                node = laid_out.settled(self.fuser, f"{op.name}.turned").node
                back = np.moveaxis(np.arange(turned.size).reshape(turned.shape), 0, axis)
                return Value.of_map(node).moved(back), along[:, 0]
        return None

    def fits(self, op: Operation, dims: Sequence[int]) -> None:
        """Refuse a map that is empty or too large, before it is made."""
        if min(dims) < 1 or prod(dims) > LARGEST_MAP:
            raise op.refusal(
                f"makes a map of {'x'.join(map(str, dims))}",
                f"A map has 1 to {LARGEST_MAP:,} elements: check the operator's inputs against the map's size.",
            )

    def fits_weights(self, op: Operation, dims: Sequence[int], given: Floats) -> None:
        """Refuse weights that become far more than the file holds, before they are made."""
        if prod(dims) > most_weights(given.size):
            raise op.refusal(
                f"needs weights of {'x'.join(map(str, dims))}", "Check its dilations and strides, or use a smaller map."
            )


def _shown(value: Value) -> str:
    return "x".join(map(str, value.dims))


Ways = Mapping[str, Way]
