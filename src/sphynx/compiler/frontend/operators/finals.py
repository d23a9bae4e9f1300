"""Take off what turns logits into probabilities at a network's end: it is the client's part, which the program names.

What keeps all elements in their order may follow it (Flatten, Reshape, Squeeze ...): it does the same to the logits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sphynx.compiler.frontend.operators.operation import Call
from sphynx.program.outputs import Final

FINALS: dict[str, Final] = {"Softmax": "softmax", "LogSoftmax": "log_softmax", "Sigmoid": "sigmoid"}
_KEEPING = ("Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Dropout")
_OF_SHAPE = ("Shape", "Size")


@dataclass(frozen=True)
class End:
    """How a network ends: without its final function, on which axis of which value that was."""

    calls: list[Call]
    output: str
    final: Final = ""
    source: str = ""  # what the final function read
    axis: int | None = None  # of a softmax; None where it is over all logits


def without_final(calls: list[Call], output: str, opset: int) -> End:
    """Cut the final function out, so that what read its result reads the logits."""
    makers = {name: call for call in calls for name in call.outputs}
    name, chain = output, set()
    while name in makers and _keeps_order(makers[name]):
        chain.add(id(makers[name]))
        name = makers[name].inputs[0]
    last = makers.get(name)
    if last is None or last.kind not in FINALS:
        return End(calls, output)
    readers = [call for call in calls if name in call.inputs]
    if any(id(call) not in chain and call.kind not in _OF_SHAPE for call in readers):
        return End(calls, output)
    source = last.inputs[0]
    kept = [
        replace(call, inputs=tuple(source if read == name else read for read in call.inputs))
        for call in calls
        if call is not last
    ]
    return End(kept, source if output == name else output, FINALS[last.kind], source, _softmax_axis(last, opset))


def _softmax_axis(last: Call, opset: int) -> int | None:
    if last.kind == "Sigmoid":
        return None
    # Before opset 13 a softmax was over its axis and all that follow, by default all but the batch.
    axis = int(last.attributes.get("axis", 1 if opset < 13 else -1))
    return None if opset < 13 and axis == 1 else axis


def _keeps_order(call: Call) -> bool:
    """Return whether it gives all elements of what it reads, in their order."""
    if call.kind != "Rearrange":
        return call.kind in _KEEPING
    numbers = np.arange(np.prod(call.attributes["shape"]))
    moved = call.attributes["moved"](numbers.reshape(call.attributes["shape"]))
    return len(moved) == 1 and np.array_equal(moved[0].reshape(-1), numbers)
