"""Sliding windows as ONNX describes them: kernel, strides, dilations, pads, auto_pad and ceil_mode. No torch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sphynx.compiler.frontend.operators.operation import Operation
from sphynx.compiler.frontend.operators.value import Pads
from sphynx.compiler.fusion.window_sums import Counts
from sphynx.program.ir import MAX_EXTENT
from sphynx.space.tally import Shape

_SIZES = f"Use kernels of one or two axes; strides and dilations from 1, paddings from 0, all to {MAX_EXTENT:,}."


@dataclass(frozen=True)
class Slide:
    """Along one axis."""

    kernel: int
    stride: int
    dilation: int
    before: int
    after: int
    outputs: int

    @property
    def reach(self) -> int:
        """The positions from the first tap to the last."""
        return self.dilation * (self.kernel - 1) + 1


def slides(
    op: Operation, shape: Shape, kernel: Sequence[int], *, own_pads: Pads = ((0, 0), (0, 0))
) -> tuple[Slide, Slide]:
    """Slides of rows and of columns. `own_pads` are zeros that the map has around it beside the operation's."""
    strides, dilations = (_numbers(op, key, [1, 1]) for key in ("strides", "dilations"))
    pads = _numbers(op, "pads", [0, 0, 0, 0])
    sizes = (*kernel, *strides, *dilations)
    counts = (len(kernel), len(strides), len(dilations), len(pads))
    if counts != (2, 2, 2, 4) or min(sizes) < 1 or min(pads) < 0 or max(*sizes, *pads) > MAX_EXTENT:
        raise op.refusal("has a window that is not over one or two axes", _SIZES)
    found = []
    for axis, length in enumerate(shape[1:]):
        reach = dilations[axis] * (kernel[axis] - 1) + 1
        whole = sum(own_pads[axis]) + length
        before, after = _padding(op, whole, reach, strides[axis], (pads[axis], pads[axis + 2]))
        spare = whole + before + after - reach
        rounds_up = bool(op.attributes.get("ceil_mode"))  # of a map that is smaller than the kernel as well
        if spare < 0 and not (rounds_up and spare > -strides[axis]):
            raise op.refusal(f"has a kernel that reaches over {reach} of {whole} positions", "Use a larger image.")
        outputs = spare // strides[axis] + 1
        if rounds_up and spare % strides[axis] and outputs * strides[axis] < whole + before:
            outputs += 1  # a last window that begins inside, or in the padding before, may end outside
        before, after = before + own_pads[axis][0], after + own_pads[axis][1]
        found.append(Slide(kernel[axis], strides[axis], dilations[axis], before, after, outputs))
    return found[0], found[1]


def pool_slides(op: Operation, shape: Shape, own_pads: Pads) -> tuple[Slide, Slide]:
    rows, columns = slides(op, shape, kernel_shape(op), own_pads=own_pads)
    if (rows.dilation, columns.dilation) != (1, 1):
        raise op.refusal("is dilated", "Use dilations of 1.")
    return rows, columns


def padded_counts(axis: Slide, length: int) -> Counts:
    """How much of each window lies on pixels or padding; ceil_mode may end the last one beyond both."""
    starts = (axis.stride * number - axis.before for number in range(axis.outputs))
    return tuple(min(start + axis.kernel, length + axis.after) - start for start in starts)


def kernel_shape(op: Operation) -> list[int]:
    return _numbers(op, "kernel_shape", [])


def runs(axis: Slide, length: int) -> list[tuple[int, ...]]:
    """The positions that each window sees; padding is absent."""
    starts = (axis.stride * number - axis.before for number in range(axis.outputs))
    windows = (range(start, start + axis.dilation * axis.kernel, axis.dilation) for start in starts)
    return [tuple(at for at in window if 0 <= at < length) for window in windows]


def pads_nothing(op: Operation) -> bool:
    return not any(_numbers(op, "pads", [])) and op.attributes.get("auto_pad", b"NOTSET") in (b"NOTSET", b"VALID")


def _numbers(op: Operation, key: str, default: list[int]) -> list[int]:
    return [int(number) for number in op.attributes.get(key, default)]


def _padding(op: Operation, length: int, reach: int, stride: int, pads: tuple[int, int]) -> tuple[int, int]:
    kind = bytes(op.attributes.get("auto_pad", b"NOTSET")).decode(errors="replace")
    if kind == "NOTSET":
        return pads
    if kind == "VALID":
        return 0, 0
    if kind not in ("SAME_UPPER", "SAME_LOWER"):
        raise op.refusal(f"has auto_pad {kind}", "Use NOTSET, VALID, SAME_UPPER or SAME_LOWER.")
    total = max(0, (-(-length // stride) - 1) * stride + reach - length)
    small, large = total // 2, total - total // 2
    return (small, large) if kind == "SAME_UPPER" else (large, small)
