"""Take off what turns logits into probabilities at a network's end: it is the client's part, which the program names.

What keeps all elements in their order may follow it (Flatten, Reshape, Squeeze ...): it does the same to the logits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from sphynx.compiler.frontend.operators.operation import Call
from sphynx.program.outputs import Final

FINALS: dict[str, Final] = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}
_KEEPING = ("Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Dropout")
_OF_SHAPE = ("Shape", "Size")


@dataclass(frozen=True)
class End:
    """One output of a network without its final function, which was on an axis of another value."""

    name: str  # of the output
    value: str  # that it is
    final: Final = ""
    source: str = ""  # what the final function read
    axis: int = 1  # of a softmax, with the batch
    is_over_rest: bool = False  # a softmax over its axis and all that follow

    def place(self, dims: Sequence[int], source: Sequence[int]) -> tuple[tuple[int, ...], int] | None:
        """Find the softmax's axis in the output's dimensions, given those of what it read; None where it is none of
        them. A softmax over everything makes the output a vector."""
        if self.final in ("", "sigmoid"):
            return tuple(dims), 0
        axis = self.axis % (len(source) + 1) - 1
        if axis < 0:
            return None
        last = len(source) if self.is_over_rest else axis + 1
        before, length, after = prod(source[:axis]), prod(source[axis:last]), prod(source[last:])
        for number, own in enumerate(dims):
            if (prod(dims[:number]), own, prod(dims[number + 1 :])) == (before, length, after):
                return tuple(dims), number
        return ((length,), 0) if before == after == 1 else None


def without_finals(calls: list[Call], outputs: Mapping[str, str], opset: int) -> tuple[list[Call], tuple[End, ...]]:
    """Cut the final functions of the outputs, values by name, out: so that what read their results reads the logits."""
    ends: list[End] = []
    for name, value in outputs.items():
        before = next((end for end in ends if outputs[end.name] == value), None)
        if before is not None:
            ends.append(replace(before, name=name))
            continue
        calls, end = _without_final(calls, End(name, value), {*outputs.values()} - {value}, opset)
        ends.append(end)
    return calls, tuple(ends)


def _without_final(calls: list[Call], end: End, others: set[str], opset: int) -> tuple[list[Call], End]:
    makers = {name: call for call in calls for name in call.outputs}
    name, chain = end.value, set()
    while name in makers and _keeps_order(makers[name]):
        chain.add(id(makers[name]))
        name = makers[name].inputs[0]
    last = makers.get(name)
    if last is None or last.kind not in FINALS or name in others:
        return calls, end
    readers = [call for call in calls if name in call.inputs]
    if any(id(call) not in chain and call.kind not in _OF_SHAPE for call in readers):
        return calls, end
    source = last.inputs[0]
    kept = [
        replace(call, inputs=tuple(source if read == name else read for read in call.inputs))
        for call in calls
        if call is not last
    ]
    value = source if end.value == name else end.value
    # Before opset 13 a softmax was over its axis and all that follow, by default all but the batch.
    axis = int(last.attributes.get("axis", 1 if opset < 13 else -1))
    return kept, End(end.name, value, FINALS[last.kind], source, axis, is_over_rest=opset < 13)


def _keeps_order(call: Call) -> bool:
    """Return whether it gives all elements of what it reads, in their order."""
    if call.kind != "Rearrange":
        return call.kind in _KEEPING
    numbers = np.arange(np.prod(call.attributes["shape"]))
    moved = call.attributes["moved"](numbers.reshape(call.attributes["shape"]))
    return len(moved) == 1 and np.array_equal(moved[0].reshape(-1), numbers)
