"""Silent OT (core/ot/silent.h): as `sphynx.core.ot`, many OTs of a session for a few bytes in all.

Both parties first make `SHAPE.seeds` correlated OTs with random choices by a session of `sphynx.core.ot`, with its
checks. Then, before OTs are short, the sender makes trees and they go to the receiver:

    refill       `refill` at the sender, its message, `refill` at the receiver: SHAPE.usable OTs more for both
    check        where the receiver does not trust the sender: what `refill` returns goes back, `prove` at the sender,
                 `accept` at the receiver before any of these OTs is used. One that made other trees is refused with
                 InconsistentOtError, or has guessed bits of the receiver's choices
    extend       as in `sphynx.core.ot`; the receiver's message is a bit for each OT, none with random choices
    late tweak   and use, or an early tweak, the same

The receiver's choices hide by learning parity with noise; docs/security/silent-ot.md says with which margin. Where a
client receives, nothing that it sends but the seeds' extension can be wrong, and that is checked.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from sphynx.core import Prg, _native, ot
from sphynx.core.bits import plane_words
from sphynx.core.ot import Words

MASKED_BYTES, PROOF_BYTES = 16, 32
_EARLY = b"sphynx silent R"  # what an early tweak is hashed for


@dataclass(frozen=True)
class Shape:
    """Size a batch: an LPN secret of `secret` bits, and `trees` trees of 2^`depth` leaves, one noisy in each."""

    secret: int
    trees: int
    depth: int

    @property
    def seeds(self) -> int:
        """Correlated OTs that a batch begins with; the batch before it keeps them."""
        return _native.silent_seeds(self.secret, self.trees, self.depth)

    @property
    def usable(self) -> int:
        """OTs that a refill gives."""
        return (self.trees << self.depth) - self.seeds

    @property
    def refill_blocks(self) -> int:
        return self.trees * self.depth


SHAPE = Shape(*_native.silent_shape)  # 128 bits and more; others are for tests


def message_blocks(count: int, *, random_choices: bool) -> int:
    """Blocks of one extension's message: a bit for each OT, none with random choices."""
    return 0 if random_choices else -(-count // 128)


class SilentReceiver(ot.CorrelatedReceiver):
    """Holds the choice bits. `t` is of `shape.seeds` OTs with random choices, `session` a block that both know and
    neither chose alone. With `checked` it does not trust the sender."""

    def __init__(self, session: bytes, t: Words, *, checked: bool, shape: Shape = SHAPE) -> None:
        self._ots = _native.SilentReceiver(shape.secret, shape.trees, shape.depth, checked, session, t)
        self._session, self._extensions = session, 0

    @property
    def available(self) -> int:
        """OTs that can be extended to before the next refill."""
        return self._ots.available()

    def refill(self, message: Words, *, threads: int = 0) -> bytes:
        """Take the sender's trees; return what it shall prove them for, where it is checked."""
        return self._ots.refill(message, threads)

    def accept(self, proof: bytes) -> None:
        """Compare the sender's proof of its last refill."""
        if not self._ots.accept(proof):
            raise ot.inconsistent("refill")

    def correlated(self, choices: Words, count: int, *, threads: int = 0) -> tuple[Words, Words]:
        message = np.empty((message_blocks(count, random_choices=False), 2), np.uint64)
        t = np.empty((count, 2), np.uint64)
        self._ots.extend(count, choices, False, message, t, threads)
        self._extensions += 1
        return message, t

    def correlated_random(self, count: int, *, threads: int = 0) -> tuple[Words, Words, Words]:
        """As in the base class; the message is empty."""
        message, t = np.empty((0, 2), np.uint64), np.empty((count, 2), np.uint64)
        choices = np.empty(plane_words(count), np.uint64)
        self._ots.extend(count, choices, True, message, t, threads)
        self._extensions += 1
        return message, choices, t

    def early_tweak(self) -> bytes:
        return _early_tweak(self._session, self._extensions)


class SilentSender(ot.CorrelatedSender):
    """Holds delta. `q` is of `shape.seeds` OTs of `few`, the session that also hashes pads; trees and late tweaks are
    drawn from `prg`."""

    def __init__(
        self, session: bytes, few: ot.OtSender, delta: Words, q: Words, prg: Prg, *, shape: Shape = SHAPE
    ) -> None:
        self._ots = _native.SilentSender(shape.secret, shape.trees, shape.depth, session, delta, q)
        self._few, self._prg, self._refill_blocks = few, prg, shape.refill_blocks
        self._session, self._extensions = session, 0

    @property
    def available(self) -> int:
        """OTs that can be extended to before the next refill."""
        return self._ots.available()

    def refill(self, *, threads: int = 0) -> Words:
        """Make the trees of another batch; return the message for the receiver."""
        message = np.empty((self._refill_blocks, 2), np.uint64)
        self._ots.refill(self._prg, message, threads)
        return message

    def prove(self, masked: bytes, *, threads: int = 0) -> bytes:
        """Answer a receiver that checks the last refill."""
        return self._ots.prove(masked, threads)

    def correlated(self, message: Words, count: int, *, random_choices: bool, threads: int = 0) -> ot.FixedLabels:
        q = np.empty((count, 2), np.uint64)
        self._ots.extend(count, random_choices, message, q, threads)
        self._extensions += 1
        return ot.FixedLabels(q, _early_tweak(self._session, self._extensions), self._prg)

    def pads(self, q: Words, tweak: bytes, *, threads: int = 0) -> ot.PadPair:
        return self._few.pads(q, tweak, threads=threads)


def _early_tweak(session: bytes, extensions: int) -> bytes:
    said = session + extensions.to_bytes(8, "little")
    return hashlib.blake2b(said, digest_size=ot.TWEAK_BYTES, person=_EARLY).digest()
