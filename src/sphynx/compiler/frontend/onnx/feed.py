"""Feed an ONNX file: the input that takes the image, open sizes filled, and constants for the others. No torch.

Files of TensorFlow read [n, height, width, channels]. Images have their channels first everywhere else, so the graph
sees a view of the image, whose Transpose back costs nothing.

    file's input          image                 told by
    [n, c, h, w]          [c, h, w]
    [n, h, w, c]          [c, h, w]             a Transpose to [n, c, h, w] that reads it, or its sizes
    [n, c, length]        [c, 1, length]
    [n, length]           [1, 1, length]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sphynx.compiler.frontend.operators.sizes import LARGEST_MAP
from sphynx.errors import InputError, OpenSizesError
from sphynx.program.convolve import Array
from sphynx.space.tally import Shape

if TYPE_CHECKING:
    from onnx import GraphProto, ValueInfoProto

Number = bool | int | float
Constant = Number | str | Sequence[Number] | Array

FIRST = (0, 3, 1, 2)  # a Transpose from channels last to channels first
_USUAL = 224  # rows and columns of images
_COLOURS = (1, 3, 4)  # numbers of channels that images have
_THROUGH = ("Identity", "Cast", "Sub", "Add", "Mul", "Div")  # between the input and its Transpose
_EXPORT = "Export the network again, as one graph from an image [n, channels, height, width] to logits [n, classes]."


@dataclass(frozen=True, eq=False)
class Feed:
    """The image and the constants that a file's inputs are given."""

    input: str
    dims: tuple[int, ...]  # of one image as the file sees it, without the batch
    is_channels_last: bool = False
    constants: Mapping[str, Array] = field(default_factory=dict)

    @property
    def image(self) -> Shape:
        if self.is_channels_last:
            return Shape(self.dims[2], *self.dims[:2])
        if len(self.dims) == 3:
            return Shape(*self.dims)
        return Shape(self.dims[0] if len(self.dims) == 2 else 1, 1, self.dims[-1])

    @property
    def notes(self) -> tuple[str, ...]:
        """Say what a user might not expect."""
        if not self.is_channels_last:
            return ()
        return (
            f"its input {self.input} has channels last, [n, {', '.join(map(str, self.dims))}]; images are given with "
            f"channels first, [n, {', '.join(map(str, self.image))}], as to every program",
        )

    def viewed(self, numbers: Array) -> Array:
        """View numbers of one image [channels, height, width] as the file sees it."""
        return numbers.transpose(1, 2, 0) if self.is_channels_last else numbers.reshape(self.dims)


def feed_of(
    graph: GraphProto,
    held: Mapping[str, Array],
    where: str,
    shape: Sequence[int] | None = None,
    inputs: Mapping[str, Constant] | None = None,
) -> Feed:
    """`held` are the constants of the file itself; `shape` fills open sizes, `inputs` sets further inputs by name."""
    declared = {value.name: value for value in graph.input if value.name not in held}
    given = dict(inputs or {})
    unknown = [name for name in given if name not in declared]
    if unknown:
        raise InputError(
            f"it has no input {unknown[0]}; it has {', '.join(map(shown, declared.values())) or 'none'}",
            where=where,
            remedy="Name one of its inputs in `inputs`.",
        )
    constants = {name: _constant(declared[name], value, where) for name, value in given.items()}
    left = [value for name, value in declared.items() if name not in constants]
    if len(left) != 1:
        others = {value.name: 0 for value in left[1:]}
        raise InputError(
            f"it has {len(left)} inputs ({', '.join(map(shown, left)) or 'all are constants'}), not one image",
            where=where,
            remedy=f"Give all but the image as constants, such as `inputs={others}`." if left else _EXPORT,
        )
    dims = _dims(left[0], shape, where)
    is_last = len(dims) == 3 and _is_channels_last(graph, left[0].name, dims)
    return Feed(left[0].name, dims, is_last, constants)


def shown(value: ValueInfoProto) -> str:
    """An input or output as messages show it: name [n, 3, height, width]."""
    return f"{value.name} [{', '.join(map(str, _declared(value)))}]"


def _declared(value: ValueInfoProto) -> list[int | str]:
    dims = value.type.tensor_type.shape.dim
    return [dim.dim_value if dim.dim_value > 0 else (dim.dim_param or "?") for dim in dims]


def _dims(value: ValueInfoProto, shape: Sequence[int] | None, where: str) -> tuple[int, ...]:
    from onnx import TensorProto

    tensor = value.type.tensor_type
    if tensor.elem_type not in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE):
        raise InputError(f"its input {value.name} is not floating point", where=where, remedy=_EXPORT)
    declared = _declared(value)
    if not 2 <= len(declared) <= 4:
        raise InputError(f"its input {shown(value)} is not an image or a signal", where=where, remedy=_EXPORT)
    batch, *lengths = declared
    if isinstance(batch, int) and batch != 1:
        raise InputError(
            f"its input {shown(value)} takes {batch} images at once", where=where, remedy="Export it for one, or n."
        )
    found = _filled(lengths, shape, f"its input {shown(value)}", where)
    if prod(found) > LARGEST_MAP:
        raise InputError(
            f"{'x'.join(map(str, found))} is not a valid image shape",
            where=where,
            remedy=f"Use smaller images: {LARGEST_MAP:,} elements at most.",
        )
    return found


def _filled(lengths: list[int | str], shape: Sequence[int] | None, what: str, where: str) -> tuple[int, ...]:
    """The lengths, the open ones from `shape`, which may have its channels first where the file has them last."""
    if shape is None:
        known = [length for length in lengths if isinstance(length, int)]
        if len(known) < len(lengths):
            sizes = tuple(length if isinstance(length, int) else _USUAL for length in lengths)
            remedy = f"Give them: `input_shape={'x'.join(map(str, sizes))}`, for example."
            error = OpenSizesError(f"{what} has open sizes", where=where, remedy=remedy)
            error.example = sizes
            raise error
        return tuple(known)
    given = tuple(shape)[1:] if len(shape) == len(lengths) + 1 and shape[0] == 1 else tuple(shape)
    for order in (given, (*given[1:], *given[:1])):
        both = list(zip(lengths, order, strict=False))
        if len(order) == len(lengths) and min(order) > 0 and all(own == n for own, n in both if isinstance(own, int)):
            return order
    raise InputError(
        f"{what} does not take {'x'.join(map(str, shape))}",
        where=where,
        remedy="Give its sizes without n, those that are fixed as they are: `input_shape=3x48x192`, for example.",
    )


def _is_channels_last(graph: GraphProto, name: str, dims: tuple[int, ...]) -> bool:
    reached = {name}
    for node in graph.node:
        if not reached.intersection(node.input):
            continue
        if node.op_type == "Transpose":
            return any(tuple(attribute.ints) == FIRST for attribute in node.attribute)
        if node.op_type not in _THROUGH:
            break
        reached.update(node.output)
    return dims[2] in _COLOURS and dims[0] not in _COLOURS


def _constant(value: ValueInfoProto, given: Constant, where: str) -> Array:
    """The array of a further input: one number for all of its elements, numbers with commas between them, or a .npy."""
    from onnx import helper

    kind = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    shape = tuple(length if isinstance(length, int) else 1 for length in _declared(value))
    if prod(shape) > LARGEST_MAP:
        raise InputError(f"its input {shown(value)} is too large for a constant", where=where, remedy=_EXPORT)
    try:
        if isinstance(given, str) and given.endswith(".npy"):
            stored: Array = np.load(Path(given), allow_pickle=False)
            return stored.astype(kind)
        numbers = [float(part) for part in given.split(",")] if isinstance(given, str) else given
        array = np.asarray(numbers).astype(kind)
        if array.size == 1:
            return np.full(shape, array.reshape(-1)[0], kind)
        return array if array.ndim > 1 else array.reshape(shape)
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"{given!r} does not fit its input {shown(value)} ({error})",
            where=where,
            remedy="Give one number, as many as it has with commas between them, or a .npy file.",
        ) from None
