"""Labels in place of numbers: of scores of classes a client gets the number of the largest, the first where several
are, or that it is not sure.

With a margin the label is told only where the largest score leads the second by the margin or more. Both are part of
the program, hence of its hash, to which everything is bound that is prepared for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sphynx.program.convolve import Array
from sphynx.program.outputs import Output
from sphynx.program.security import REVEALED, AnswerKind
from sphynx.space.tally import Shape

NOT_SURE = -1  # in place of a class's number
MAX_CLASSES, MAX_BITS = 1 << 12, 63  # that the circuit compares


def label_faults(
    outputs: Sequence[Output], output: Output, shapes: Mapping[str, Shape], ranges: Mapping[str, int]
) -> Iterator[str]:
    """List what keeps an output from being revealed as a label."""
    size, bits = shapes[output.source].size, ranges[output.source]
    if refusal := REVEALED["label", answer_kind(outputs)]:
        yield refusal
        return
    if not 2 <= size <= MAX_CLASSES:
        yield f"the output {output.name}: a label is one of 2 to {MAX_CLASSES:,} classes, not of {size:,}"
    if bits > MAX_BITS:
        yield f"the output {output.name}: its numbers have {bits} bits, and labels are found of {MAX_BITS} or fewer"
    elif not 0 <= output.margin < 1 << bits:
        yield f"the output {output.name}: no number of {bits} bits leads by {output.margin:,}"


def answer_kind(outputs: Sequence[Output]) -> AnswerKind:
    """Say what these outputs are to a client."""
    if len(outputs) > 1:
        return "several"
    if not outputs[0].has_classes:
        return "numbers"
    return "findings" if outputs[0].final == "sigmoid" else "classes"


def find_labels(scores: Array, margin: int = 0) -> NDArray[np.int64]:
    """The labels of integers [n, classes], NOT_SURE where the largest leads by less than the margin: the oracle."""
    labels: NDArray[np.int64] = scores.argmax(axis=1).astype(np.int64)
    ordered = np.sort(scores, axis=1)
    return np.where(ordered[:, -1] - ordered[:, -2] >= margin, labels, NOT_SURE)
