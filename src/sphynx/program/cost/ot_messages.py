"""Sizes of the messages that extend OTs, to the byte: both parties know them beforehand, and estimates add them up."""

from __future__ import annotations

from sphynx.core import ot, silent
from sphynx.program.extensions import SOFTSPOKEN, Extension, Extensions

SOFTSPOKEN_PARAMETER = 4  # 4 bytes of traffic per OT for about four AES blocks of work
BLOCK_BYTES = 16


def blocks_down(count: int, *, random_choices: bool, made: Extensions = SOFTSPOKEN) -> int:
    """Return the blocks of the client's message for `count` OTs in `down`, its check included."""
    if made.down == "silent":
        return silent.message_blocks(count, random_choices=random_choices)
    return ot.message_blocks(SOFTSPOKEN_PARAMETER, count, random_choices=random_choices, checked=True)


def blocks_up(count: int, *, made: Extensions = SOFTSPOKEN) -> int:
    """Return the blocks of the server's message for `count` OTs with random choices in `up`."""
    if made.up == "silent":
        return silent.message_blocks(count, random_choices=True)
    return ot.message_blocks(SOFTSPOKEN_PARAMETER, count, random_choices=True, checked=False)


SEED_BLOCKS_DOWN = blocks_down(silent.SHAPE.seeds, random_choices=True)  # once a connection
SEED_BLOCKS_UP = blocks_up(silent.SHAPE.seeds)
REFILL_BYTES = BLOCK_BYTES * silent.SHAPE.refill_blocks  # for each silent.SHAPE.usable OTs
PROOF_BYTES = silent.MASKED_BYTES + silent.PROOF_BYTES  # of a refill in `up`, whose trees the client makes


def bytes_each(extension: Extension, *, random_choices: bool) -> float:
    """Return the bytes of one OT among many, checks and a connection's set-up left out."""
    if extension == "silent":
        return REFILL_BYTES / silent.SHAPE.usable + (0.0 if random_choices else 1 / 8)
    many = 1 << 20
    blocks = ot.message_blocks(SOFTSPOKEN_PARAMETER, many, random_choices=random_choices, checked=False)
    return BLOCK_BYTES * blocks / many
