"""Build what networks have beside plain ReLUs out of ReLUs, a square and public sums: max pools, clips, leaky ReLUs.

max(a, b)          b + ReLU(a - b)                        a comparison, exact
clip(x, low, high) low + ReLU(x - low) - ReLU(x - high)   both in one layer; a hard sigmoid is one
leaky ReLU         (1 - slope) ReLU(x) + slope x          x truncated as the ReLU is
hard swish         e^2 / 6 - a / 2 + 3 b / 2              a = ReLU(x + 3), b = ReLU(x - 3), e = a - b
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sphynx.compiler.fusion.affine import Floats, Node
from sphynx.compiler.fusion.fuse import Fuser
from sphynx.compiler.fusion.selection import Index, Selection, pick
from sphynx.program.cost.cost import relu_cost
from sphynx.program.ir import NOTHING, Relu, Square, Truncate
from sphynx.space.tally import Shape

Run = tuple[int, ...]  # positions along an axis whose maximum is taken, ascending
ROWS, COLUMNS = 1, 2
# Of most layers: a ReLU's input and what it leaves, in a ring of that many bits.
_WIDE_BITS, _KEPT_BITS, _RING_BITS = 29, 11, 32


def pools_first(rows: Sequence[Run], columns: Sequence[Run], size: tuple[int, int]) -> bool:
    """ReLU and max commute. Pooled first, fewer ReLUs are left, but the comparisons are on wider numbers."""
    compared = sum(comparisons(rows)) * size[1] + sum(comparisons(columns)) * len(rows)

    def ands(relus: int, comparison_bits: int) -> int:
        dropped = _WIDE_BITS - _KEPT_BITS
        relu = relu_cost(relus, _WIDE_BITS, _RING_BITS, dropped).gc_ands
        return relu + relu_cost(max(compared, 1), comparison_bits, _RING_BITS, 0).gc_ands

    return ands(len(rows) * len(columns), _WIDE_BITS + 1) <= ands(size[0] * size[1], _KEPT_BITS + 1)


def comparisons(runs: Sequence[Run]) -> list[int]:
    """Count the comparisons of one line along the axis, in each of its layers."""
    return [len(layer) for layer in _layers(runs)]


def maximum(fuser: Fuser, node: Node, rows: Sequence[Run], columns: Sequence[Run], name: str) -> Node:
    """The maximum over all pairs of a run of rows and a run of columns. Rows come first, as they lie in memory.

    Of numbers that are not truncated it is not, either: `Fuser.truncated` is for a pool that no activation follows.
    """
    tensor = fuser.as_tensor(node, f"{name}.input")
    for axis, runs, called in ((ROWS, rows, "rows"), (COLUMNS, columns, "columns")):
        tensor = _along(fuser, tensor, axis, runs, f"{name}.{called}")
    return tensor


def _along(fuser: Fuser, node: Node, axis: int, runs: Sequence[Run], name: str) -> Node:
    """All runs of a layer are compared at once; each is found where an earlier layer, or the tensor itself, has it."""
    if len(node.parts) > 1:
        node = fuser.as_tensor(node, f"{name}.input")
    (whole,) = node.parts
    found: dict[Run, tuple[Selection, int]] = {(at,): (whole, at) for at in range(node.shape[axis])}
    for number, layer in enumerate(_layers(runs)):
        firsts, seconds = zip(*(_halves(run) for run in layer), strict=True)
        second = _gather(found, seconds, axis)
        less = [part.negated() for part in second]
        difference = fuser.combine(f"{name}.{number}.difference", [*_gather(found, firsts, axis), *less])
        positive = fuser.activate(Relu(f"{name}.{number}.comparison", difference, comparison=True))
        larger = fuser.combine(f"{name}.{number}", [*second, *positive.parts])
        tensor = fuser.tensor(larger).parts[0]
        found.update((run, (tensor, at)) for at, run in enumerate(layer))
    parts = _gather(found, list(runs), axis)
    bias = np.zeros((len(node.bias), *(len(index) for index in (parts[0].rows, parts[0].columns))))
    return Node(Shape(len(whole.channels), *bias.shape[1:]), {}, bias, tuple(parts))


def _gather(found: dict[Run, tuple[Selection, int]], runs: Sequence[Run], axis: int) -> list[Selection]:
    """The maxima of these runs side by side, out of the tensors that hold them."""
    tensors = dict.fromkeys(found[run][0] for run in runs)
    parts = []
    for tensor in tensors:
        index: Index = tuple(found[run][1] if found[run][0] == tensor else NOTHING for run in runs)
        parts.append(tensor.selected(*pick(axis, index)))
    return parts


def _layers(runs: Sequence[Run]) -> list[list[Run]]:
    """The runs that have to be made, those first that others are made of: a maximum of n takes ceil(log2 n) layers."""
    heights: dict[Run, int] = {}
    waiting = list(runs)
    while waiting:
        run = waiting.pop()
        if len(run) > 1 and run not in heights:
            heights[run] = (len(run) - 1).bit_length()
            waiting += _halves(run)
    return [sorted(run for run in heights if heights[run] == h) for h in sorted(set(heights.values()))]


def _halves(run: Run) -> tuple[Run, Run]:
    """Split off as many as a power of two from the rest: neighbouring windows have such parts in common."""
    cut = 1 << ((len(run) - 1).bit_length() - 1)
    return run[:cut], run[cut:]


def clip(fuser: Fuser, node: Node, low: float, high: float, name: str) -> Node:
    """low < high."""
    lower, upper = _above(fuser, node, low, high, name, name)
    clipped = fuser.tensor(fuser.combine(f"{name}.clipped", (lower, upper.negated())))
    return fuser.shift(clipped, np.full((node.shape.channels, 1, 1), low)) if low else clipped


def _above(fuser: Fuser, node: Node, low: float, high: float, name: str, relus: str) -> tuple[Selection, Selection]:
    """ReLU(x - low) and ReLU(x - high) as one layer, of twice the channels."""
    channels = node.shape.channels
    whole = Selection.whole(fuser.named(node, f"{name}.input"), node.shape)
    double = whole.selected(tuple(range(channels)) * 2, None, None)
    bounds = -np.repeat([low, high], channels)
    both = fuser.combine(f"{name}.both", (double,), bounds)
    parts = fuser.activate(Relu(relus, both)).parts[0]
    return (
        parts.selected(tuple(range(channels)), None, None),
        parts.selected(tuple(range(channels, 2 * channels)), None, None),
    )


def hard_swish(fuser: Fuser, node: Node, name: str) -> Node:
    """x clip(x + 3, 0, 6) / 6: a square between -3 and 3, a line beyond."""
    lower, upper = _above(fuser, node, -3.0, 3.0, name, f"{name}.relus")
    clipped = fuser.combine(f"{name}.clipped", (lower, upper.negated()))
    square = fuser.activate(Square(f"{name}.square", clipped)).parts[0]
    summed = fuser.combine(f"{name}.sum", (square, lower, upper), factors=(1 / 6, -1 / 2, 3 / 2))
    return fuser.truncated(fuser.tensor(summed), name)


def hard_sigmoid(fuser: Fuser, node: Node, slope: float, offset: float, name: str) -> Node:
    """clip(slope x + offset, 0, 1), slope > 0. The slope goes where a linear map takes it for nothing: into the one
    before, or into what reads the result."""
    channels = node.shape.channels
    factor, shift = np.full(channels, slope), np.full(channels, offset)
    if node.kernels:
        return clip(fuser, fuser.scale(node, factor, shift), 0.0, 1.0, name)
    return fuser.scale(clip(fuser, node, -offset / slope, (1 - offset) / slope, name), factor, shift)


def leaky_relu(fuser: Fuser, node: Node, slope: Floats, name: str) -> Node:
    """`slope` of each channel. The linear part is truncated like the ReLU, so that the ring grows by a bit at most."""
    source = fuser.compared(node, f"{name}.input")
    positive = fuser.activate(Relu(name, source))
    straight = fuser.activate(Truncate(f"{name}.straight", source, 0))
    nothing = np.zeros(len(slope))
    return fuser.scale(positive, 1 - slope, nothing) + fuser.scale(straight, slope, nothing)
