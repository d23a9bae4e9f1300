"""Count what it costs to reveal a label in place of scores: one garbled circuit for each image, with either backend.

Bytes are exactly those of the messages (protocol/answer.py), but for the OTs, whose bytes depend on how they are
extended; each message has a frame header of 8 bytes beside.
"""

from __future__ import annotations

from dataclasses import dataclass

from sphynx.core.bits import plane_words
from sphynx.program.cost.cost import AND_BYTES, LABEL_BYTES
from sphynx.program.ir import Program

TWEAK_BYTES = 16


@dataclass(frozen=True)
class AnswerCost:
    """The cost for all images of a bundle."""

    ands: int = 0
    table_bytes: int = 0  # offline, from the server, with the late tweak
    ots: int = 0  # offline: one for each bit of the client's shares
    online_bytes: int = 0  # from the server: labels of its shares, and colours by which the client reads the result
    messages: int = 0  # online


def answer_cost(program: Program, images: int = 1) -> AnswerCost:
    """Count for a program that reveals a label."""
    output = program.outputs[0]
    classes, bits = program.shapes[output.source].size, program.ranges[output.source]
    ands = count_ands(classes, bits, output.margin)
    runs = split_images(images, ands)
    result_bits = (classes - 1).bit_length() + (output.margin > 0)
    return AnswerCost(
        images * ands,
        TWEAK_BYTES + images * ands * AND_BYTES,
        images * classes * bits,
        sum(len(run) * classes * bits * LABEL_BYTES + result_bits * 8 * plane_words(len(run)) for run in runs),
        len(runs),
    )


def count_ands(classes: int, bits: int, margin: int) -> int:
    """Count the ANDs of an image's circuit (core/circuit/library.h)."""
    number = sum((other - 1).bit_length() for other in range(1, classes))
    add = classes * (bits - 1)
    if not margin:
        return add + number + (2 * classes - 3) * bits
    trailing_zeros = (margin & -margin).bit_length() - 1
    lead = (bits - 1) + (bits - 1 - trailing_zeros)
    return add + number + 2 * (2 * classes - 3) * bits + lead


def split_images(images: int, ands: int) -> list[range]:
    """The images of each message: as many as have tables of 16 MiB."""
    most = max(1, (1 << 24) // (ands * AND_BYTES))
    return [range(first, min(first + most, images)) for first in range(0, images, most)]
