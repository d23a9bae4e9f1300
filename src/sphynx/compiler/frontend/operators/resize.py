"""Resize and Upsample by constants: nearest pixels are a selection, bilinear ones a sum with whole weights, or
with factors where the weights are not small fractions."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import numpy as np
from numpy.typing import NDArray

from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.single_precision import meant
from sphynx.compiler.frontend.operators.value import Value
from sphynx.compiler.frontend.operators.walker import Walker, Ways
from sphynx.compiler.fusion.affine import Floats, Node
from sphynx.compiler.fusion.select import select
from sphynx.compiler.fusion.selection import Index, pick
from sphynx.program.ir import NOTHING
from sphynx.space.tally import Shape

Positions = NDArray[np.int64]
_LARGEST_DENOMINATOR = 32  # of bilinear weights along an axis
_MOST_SUMMANDS = 1024
_MODES = ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel")


def resize(walker: Walker, op: Operation) -> Value:
    node = walker.map(op)
    sizes, scales = _sizes(walker, op, node.shape)
    walker.fits(op, (node.shape.channels, *sizes))
    mode = bytes(op.attributes.get("mode", b"nearest")).decode(errors="replace")
    read = [_read(op, n, size, scale) for n, size, scale in zip(node.shape[1:], sizes, scales, strict=True)]
    if mode == "nearest":
        rows, columns = (_nearest(op, at, n) for at, n in zip(read, node.shape[1:], strict=True))
        return Value.of_map(select(walker.fuser, node, op.name, None, rows, columns))
    if mode not in ("linear", "bilinear"):
        raise op.refusal(f"has mode {mode}", "Use nearest or linear.")
    return Value.of_map(_bilinear(walker, op, node, read))


def _sizes(walker: Walker, op: Operation, shape: Shape) -> tuple[list[int], list[Fraction]]:
    """Sizes of rows and columns: how many there will be, and the scale that coordinates are computed with."""
    upsample = op.kind == "Upsample"
    scale_input, size_input = (1, 9) if upsample or op.opset < 11 else (2, 3)
    if size_input < len(op.inputs) and op.inputs[size_input]:
        target = walker.integers(op, size_input)
        scales = [Fraction(n, length) for n, length in zip(target, (1, *shape), strict=False)]
    else:
        given = walker.numbers(op, scale_input).reshape(-1)
        if not np.isfinite(given).all():
            raise op.refusal("has scales that are not finite", "Resize rows and columns, by constants.")
        scales = [meant(n) for n in given.tolist()]
        target = [floor(n * length) for n, length in zip(scales, (1, *shape), strict=False)]
    if len(target) != 4 or target[:2] != [1, shape.channels] or min(target) < 1:
        raise op.refusal(f"makes {target} out of a map of {shape}", "Resize rows and columns, by constants.")
    return target[2:], scales[2:]


def _read(op: Operation, length: int, size: int, scale: Fraction) -> Floats:
    """The coordinate that each output reads; exact where that is a pixel, which one rounding would miss."""
    outputs = range(size)
    default = b"half_pixel" if op.kind == "Resize" and op.opset >= 11 else b"asymmetric"
    mode = bytes(op.attributes.get("coordinate_transformation_mode", default)).decode(errors="replace")
    if mode not in _MODES:
        raise op.refusal(f"computes coordinates by {mode}", f"Use {', '.join(_MODES)}.")
    if mode == "asymmetric":
        return np.array([float(at / scale) for at in outputs])
    if mode == "align_corners":
        return np.array([float(Fraction(at * (length - 1), max(1, size - 1))) for at in outputs])
    if mode == "pytorch_half_pixel" and size == 1:
        return np.zeros(1)
    half = Fraction(1, 2)
    return np.array([float((at + half) / scale - half) for at in outputs])


def _nearest(op: Operation, read: Floats, length: int) -> Index:
    default = b"round_prefer_floor" if op.kind == "Resize" and op.opset >= 11 else b"floor"
    mode = bytes(op.attributes.get("nearest_mode", default)).decode(errors="replace")
    rounded = {
        "round_prefer_floor": np.ceil(read - 0.5),
        "round_prefer_ceil": np.floor(read + 0.5),
        "floor": np.floor(read),
        "ceil": np.ceil(read),
    }
    if mode not in rounded:
        raise op.refusal(f"has nearest_mode {mode}", f"Use {', '.join(rounded)}.")
    return tuple(np.clip(rounded[mode], 0, length - 1).astype(int).tolist())


def _bilinear(walker: Walker, op: Operation, node: Node, read: list[Floats]) -> Node:
    """A weight of m / d is m times the pixel, d times smaller after the sum."""
    axes = [_taps(at, n) for at, n in zip(read, node.shape[1:], strict=True)]
    (rows, row_divisor), (columns, column_divisor) = axes
    weights = [(r, c, m * n) for r, m in rows for c, n in columns]
    if not (row_divisor and column_divisor) or sum(times for _, _, times in weights) > _MOST_SUMMANDS:
        return _weigh(walker, op, node, read)
    source = walker.fuser.as_tensor(node, f"{op.name}.input")
    total: Node | None = None
    for row_index, column_index, times in weights:
        part = select(walker.fuser, source, op.name, None, row_index, column_index)
        for _ in range(times):
            total = part if total is None else total + part
    assert total is not None
    summed = walker.fuser.as_tensor(total, f"{op.name}.sum")
    factor = np.full(node.shape.channels, 1 / (row_divisor * column_divisor))
    return walker.fuser.scale(summed, factor, np.zeros(node.shape.channels))


def _weigh(walker: Walker, op: Operation, node: Node, read: list[Floats]) -> Node:
    """Rows, then columns, truncated behind either: each weight is a factor of the elements that it multiplies."""
    fuser = walker.fuser
    for axis, called in ((1, "rows"), (2, "columns")):
        (whole,) = fuser.truncated(node, f"{op.name}.{called}.input").parts
        shares = _shares(read[axis - 1], whole.shape[axis])
        parts = [whole.selected(*pick(axis, index)) for index in shares.values()]
        summed = fuser.combine(f"{op.name}.{called}", parts, factors=[share for _, share in shares])
        node = fuser.truncated(fuser.tensor(summed), f"{op.name}.{called}.truncated")
    return node


def _shares(read: Floats, length: int) -> dict[tuple[int, float], Index]:
    """List what each output reads of one axis, for each of its two neighbours and each weight that occurs."""
    found: dict[tuple[int, float], list[int]] = {}
    for slot, (positions, shares) in enumerate(_neighbours(read, length)):
        for output, (at, share) in enumerate(zip(positions.tolist(), shares.round(12).tolist(), strict=True)):
            if share:
                found.setdefault((slot, share), [NOTHING] * len(read))[output] = at
    return {key: tuple(index) for key, index in found.items()}


def _neighbours(read: Floats, length: int) -> list[tuple[Positions, Floats]]:
    """The two pixels that each output lies between, and its share of each."""
    read = np.clip(read, 0, length - 1)
    first = np.minimum(np.floor(read).astype(np.int64), length - 1)
    part = read - first
    return [(first, 1 - part), (np.minimum(first + 1, length - 1), part)]


def _taps(read: Floats, length: int) -> tuple[list[tuple[Index, int]], int]:
    """Return (what each output reads, how many times) for each weight that occurs, and the weights' denominator; 0
    where they have no small one."""
    neighbours = _neighbours(read, length)
    part = neighbours[1][1]
    divisor = next(
        (d for d in range(1, _LARGEST_DENOMINATOR + 1) if np.abs(part * d - np.rint(part * d)).max() < 1e-9), 0
    )
    taps: dict[tuple[int, int], list[int]] = {}
    for slot, (positions, share) in enumerate(neighbours):
        times = np.rint(share * divisor).astype(int)
        for output, (at, n) in enumerate(zip(positions.tolist(), times.tolist(), strict=True)):
            if n:
                taps.setdefault((slot, n), [NOTHING] * len(read))[output] = at
    return [(tuple(index), n) for (_, n), index in taps.items()], divisor


WAYS: Ways = {"Resize": resize, "Upsample": resize}
